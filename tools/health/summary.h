// SPDX-License-Identifier: Apache-2.0
// The links of a kind in a few figures, for tables, pictures and the history file.
#pragma once

#include <map>
#include <string>

#include "tools/health/evidence.h"

namespace weft::health {

struct Spread {
  double least = 0, middle = 0, most = 0;
};

struct KindOfLink {
  std::size_t links = 0;  // counted in each direction
  Spread microseconds;
  Spread gigabytes;  // per second
};

// "inside hosts, shm", "between hosts, tcp;ofi_rxm"
std::string kindOf(const Evidence& evidence, int from, int to);
std::map<std::string, KindOfLink> summarize(const Evidence& evidence);

}  // namespace weft::health
