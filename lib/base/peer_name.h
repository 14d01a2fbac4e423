// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/text.h"

namespace weft::inline base {

// A rank as the others know it; what is not known is empty. Without a rank: a whole host.
struct PeerName {
  int rank = -1;
  std::string host;    // its name, for people
  int pid = 0;         // as the rank itself sees it
  std::string hostId;  // equal exactly for ranks that can reach each other through the kernel

  PeerName() = default;
  PeerName(int itsRank, std::string itsHost, int itsPid = 0, std::string itsHostId = {})
      : rank(itsRank), host(std::move(itsHost)), pid(itsPid), hostId(std::move(itsHostId)) {}
  bool operator==(const PeerName&) const = default;
};

// "rank 5 (host b, pid 4711)", "rank 5" of which no more is known, "host b", or nothing.
inline std::string describe(const PeerName& name) {
  const std::string host = name.host.empty() ? "" : text("host ", name.host);
  if (name.rank < 0) return host;
  const std::string rank = text("rank ", name.rank);
  return host.empty() ? rank : text(rank, " (", host, ", pid ", name.pid, ")");
}

}  // namespace weft::inline base
