// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "control/page_report.h"

namespace weft::control {

// The calls of a communicator, as far as its ranks have told them. The fingerprint of a call is one
// of all calls up to it, so each has one before it, and ranks agree exactly if the last call of one
// lies on the way to that of the other.
class CallTree {
 public:
  using Call = PageReport::Call;

  // A rank's calls, the oldest first; those without a number are unknown. Forgets old ones.
  void add(std::span<const Call> calls);
  // Null if it is not known.
  const Call* find(std::uint64_t seq, std::uint64_t fingerprint) const;
  // That call and those before it, the newest first, as far as they are known.
  std::vector<Call> wayTo(std::uint64_t seq, std::uint64_t fingerprint) const;
  std::size_t size() const { return nodes_.size(); }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // number and fingerprint
  struct Node {
    Call call;
    std::uint64_t before = 0;  // the fingerprint of the call before it; 0: unknown
  };
  std::map<Key, Node> nodes_;
};

}  // namespace weft::control
