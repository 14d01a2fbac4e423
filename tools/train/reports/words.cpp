// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/words.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace weft::train {

std::string durationText(double seconds) {
  const int64_t all = std::llround(seconds);
  const auto [hours, minutes, rest] = std::array{all / 3600, all / 60 % 60, all % 60};
  if (hours >= 24) return fmt::format("{} d {:02}:{:02} h", hours / 24, hours % 24, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string quantityText(double value) {
  constexpr std::array<std::pair<double, char>, 4> kPrefixes{
      {{1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e4, 'k'}}};
  for (const auto& [least, prefix] : kPrefixes)
    if (std::abs(value) >= least)
      return fmt::format("{:.4g}{}", value / (prefix == 'k' ? 1e3 : least), prefix);
  return fmt::format("{:.4g}", value);
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string nowText() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local)};
}

}  // namespace weft::train
