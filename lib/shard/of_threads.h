// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace weft::shard {

// What the rank's further threads, from 1 on, have of their own during a call: made by the first
// thread, before the others need it.
template <class Own>
class OfThreads {
 public:
  // Thread k's, after begin(own) of all up to there that have not been asked for in this call. `args`
  // make one.
  template <class Begin, class... Args>
  Own& get(std::uint32_t k, const Begin& begin, Args&... args) {
    for (; working_ < k; ++working_) {
      if (all_.size() == working_) all_.push_back(std::make_unique<Own>(args...));
      begin(*all_[working_]);
    }
    return *all_[k - 1];
  }
  // After a call: take(own) of all that had a part in it.
  template <class Take>
  void end(const Take& take) {
    for (std::uint32_t k = 0; k < working_; ++k) take(*all_[k]);
    working_ = 0;
  }

 private:
  std::vector<std::unique_ptr<Own>> all_;
  std::uint32_t working_ = 0;
};

}  // namespace weft::shard
