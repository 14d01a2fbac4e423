// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/host_name.h"

#include <unistd.h>

#include <array>

namespace weft::train {

std::string hostName() {
  std::array<char, 256> name{};
  const bool isKnown = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return isKnown ? name.data() : "localhost";
}

}  // namespace weft::train
