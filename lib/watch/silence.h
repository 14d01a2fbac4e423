// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "watch/remote_ranks.h"

namespace weft::watch {

// Remote ranks that have owed an answer for long, and how that is told: a line however many they are,
// as a machine that is out of breath keeps all ranks of a job waiting for all others.
class Silence {
 public:
  // Both must outlive this; `remote` may be null: nobody is silent then.
  Silence(const std::vector<PeerName>& names, const RemoteRanks* remote)
      : names_(names), remote_(remote), warned_(names.size(), false) {}

  bool isOf(std::uint32_t rank) const;
  std::vector<std::uint32_t> ranks() const;
  // What is to be said of `silent`; empty if they are none.
  std::string words(const std::vector<std::uint32_t>& silent) const;

  // Those who are silent and have not been warned of since this wait began.
  std::vector<std::uint32_t> news();
  void beginWait() { warned_.assign(names_.size(), false); }

 private:
  const std::vector<PeerName>& names_;
  const RemoteRanks* const remote_;
  std::vector<bool> warned_;  // by rank
};

}  // namespace weft::watch
