// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/checks/host.h"

namespace weft::checks {

// What a limit reads as that is none.
inline constexpr double kUnlimited = 0x1p63;

std::string inBytes(double bytes);      // "64 KiB", "1.5 GiB", "unlimited"
std::string inCount(double count);      // "1024", "unlimited"
std::string valueOf(const Fact& fact);  // with its unit, for people

}  // namespace weft::checks
