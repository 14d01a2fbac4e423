// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "perf/limits/limits.h"
#include "plan/call.h"
#include "plan/decide.h"

namespace weft::simulator {

// A call of a communicator, decided on once and bound for each rank as its ranks would.
class Planned {
 public:
  // `job` outlives it. `ownBuffers`: all of them are of weftMemAlloc.
  Planned(tools::Job& job, const plan::Call& call, bool ownBuffers)
      : job_(job), call_(call), ownBuffers_(ownBuffers) {}
  Planned(const Planned&) = delete;

  // `tooLarge`: why there could be no such communicator, if there could be none; this call alone is
  // planned then.
  Status decide(std::string* tooLarge);
  const plan::Call& call() const { return call_; }
  const std::vector<plan::Estimate>& estimates() const { return decision_.estimates; }
  // The plan that runs, and the fingerprint of what was bound.
  Status bind(std::uint32_t member, std::uint64_t* hash,
              std::unique_ptr<const plan::Plan>* out) const;

 private:
  tools::Job& job_;
  const plan::Call call_;
  const bool ownBuffers_;
  plan::Decision decision_;
};

}  // namespace weft::simulator
