// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <functional>
#include <memory>

namespace weft::train {

// How many bytes of tensors there were at most, as libtorch reports them to its profilers.
class MostMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t change, int64_t, int64_t, c10::Device) override {
    now_ += change;
    most_ = std::max(most_, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t most() const { return most_; }

 private:
  int64_t now_ = 0, most_ = 0;
};

// The same of what this thread does.
inline double mostMemoryOf(const std::function<void()>& body) {
  const auto memory = std::make_shared<MostMemory>();
  const c10::DebugInfoGuard whileThisLives(c10::DebugInfoKind::PROFILER_STATE, memory);
  body();
  return static_cast<double>(memory->most());
}

}  // namespace weft::train
