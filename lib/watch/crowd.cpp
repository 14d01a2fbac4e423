// SPDX-License-Identifier: Apache-2.0
#include "watch/crowd.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace weft::watch {

double crowd() {
  double load = 0;
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < 1 || ::getloadavg(&load, 1) != 1) return 1;
  return std::clamp(load / static_cast<double>(cores), 1.0, 16.0);
}

}  // namespace weft::watch
