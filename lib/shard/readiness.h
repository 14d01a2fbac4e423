// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shard/layout.h"

namespace weft::shard {

// Which gradients of a micro-step are ready, and which buckets are complete by that. Buckets are
// taken in order, the same on all ranks, whatever the order of gradients.
class Readiness {
 public:
  explicit Readiness(const Layout& layout) : layout_(layout) {}

  void reset() {
    isReady_.assign(layout_.parameters().size(), 0);
    missing_.clear();
    for (const Layout::Bucket& b : layout_.buckets()) missing_.push_back(b.parameters.size());
    next_ = 0;
  }

  // For a parameter that is not tied: null, or why it cannot be ready.
  const char* mark(std::uint32_t parameter) {
    if (layout_.parameters()[parameter].frozen) return "is frozen and has no gradient";
    if (isReady_[parameter] != 0) return "is ready twice in one micro-step";
    isReady_[parameter] = 1;
    --missing_[layout_.slot(parameter).bucket];
    return nullptr;
  }

  // Takes the next bucket, if it is complete or `force`. False: there is none.
  bool take(bool force, std::uint32_t* bucket) {
    if (next_ == missing_.size() || (missing_[next_] != 0 && !force)) return false;
    *bucket = next_++;
    return true;
  }

  // The first parameter that is not ready, counted from 1; 0: all are.
  std::uint32_t missing() const {
    for (std::uint32_t p = 0; p < isReady_.size(); ++p)
      if (layout_.parameters()[p].isTrained() && isReady_[p] == 0) return p + 1;
    return 0;
  }

 private:
  const Layout& layout_;
  std::vector<std::uint8_t> isReady_;  // by parameter
  std::vector<std::size_t> missing_;   // by bucket: parameters that are not
  std::uint32_t next_ = 0;             // bucket
};

}  // namespace weft::shard
