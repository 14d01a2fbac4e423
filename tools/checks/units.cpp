// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/units.h"

#include <fmt/format.h>

#include <cmath>

namespace weft::checks {

std::string inBytes(double bytes) {
  if (bytes >= kUnlimited) return "unlimited";
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string inCount(double count) {
  return count >= kUnlimited ? "unlimited" : fmt::format("{:.0f}", count);
}

std::string valueOf(const Fact& fact) {
  if (!fact.text.empty()) return fact.text;
  if (fact.unit == "bytes") return inBytes(fact.value);
  if (fact.value >= kUnlimited) return "unlimited";
  const std::string number = fact.value == std::floor(fact.value)
                                 ? fmt::format("{:.0f}", fact.value)
                                 : fmt::format("{:.4g}", fact.value);
  return fact.unit.empty() ? number : fmt::format("{} {}", number, fact.unit);
}

}  // namespace weft::checks
