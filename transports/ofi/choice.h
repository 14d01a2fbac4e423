// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transports/ofi/candidates.h"

// Which devices all ranks use: each tells the others what it has, and all judge alike.
namespace weft::ofi {

inline constexpr std::size_t kMaxRails = 4;

// What a rank has. Plain bytes, of one size on all ranks.
struct Offering {
  static constexpr std::size_t kMax = 12;
  struct Way {
    std::uint64_t subnet = 0;  // hash
    std::uint64_t address = 0;
    std::uint64_t device = 0;
    std::uint64_t loopback = 0;
  };
  std::uint64_t host = 0;       // boot and network namespace: who shares lo
  std::uint64_t asked = 0;      // hash of WEFT_OFI_PROVIDER and WEFT_OFI_MODE
  std::uint32_t takesPart = 0;  // reaches anybody by this wire
  std::uint32_t special = 0;    // has the provider that `auto` prefers
  std::uint32_t named = 0;      // WEFT_NET_DEVICES is set
  std::uint32_t ways = 0;
  Way way[Offering::kMax] = {};
};

// Which of `own` (this rank's candidates, as it offers them) to open, in the order of the rails.
// IP: lo if all are on one host; else subnets that all have, several only if WEFT_NET_DEVICES names
// them; else each rank's first, and routers do the rest. `why`: what was passed over.
std::vector<Candidate> chooseIp(const std::vector<Candidate>& own,
                                std::span<const Offering> offerings, std::string* why);
// Others reach each other anyway: the nearest, shared fairly among the ranks of this host.
std::vector<Candidate> chooseNics(const std::vector<Candidate>& own, std::uint32_t self,
                                  std::span<const Offering> offerings);

Offering describeHost(std::uint64_t asked);  // all but the ways
void addWays(const std::vector<Candidate>&, Offering*);

}  // namespace weft::ofi
