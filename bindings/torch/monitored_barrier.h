// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "rendezvous.h"

namespace weft::pytorch {

// torch's monitoredBarrier: rank 0 says who has not come, and nothing is broken by it. It goes through the store: each
// rank leaves a key there when it comes and waits for rank 0's answer, which is empty or says who is missing. A
// question of the store is a round trip or two of TCP for each rank, which is nothing for a call that is made to find
// out why a job hangs. One thread at a time.
class MonitoredBarrier {
 public:
  explicit MonitoredBarrier(const Identity& who);
  // std::runtime_error with torch's sentences. waitAllRanks: rank 0 names all who are missing, not the first.
  void pass(Milliseconds timeout, bool waitAllRanks);

 private:
  using Clock = std::chrono::steady_clock;
  void lead(Milliseconds timeout, bool waitAllRanks);
  void follow(Milliseconds timeout);
  bool hasCome(int rank, Clock::time_point deadline, bool isFirst);
  std::vector<int> findMissing(Milliseconds timeout, bool waitAllRanks);
  void answer(const std::vector<int>& missing, const std::string& text);
  bool await(const std::string& key, Clock::time_point deadline);
  std::string keyOf(const char* what, int rank) const;

  const Identity who_;
  std::vector<std::uint64_t>
      passed_;  // how many barriers each rank has come to, as far as this rank knows
};

}  // namespace weft::pytorch
