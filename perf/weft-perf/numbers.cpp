// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/numbers.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace weft::perf {
namespace {

constexpr std::size_t kAfterZero = 8;  // the size that follows 0 in a sweep by factor

// The unit of a size's suffix, or 0 if there is no such unit.
std::size_t unitOf(const std::string& suffix) {
  if (suffix.empty()) return 1;
  if (suffix.size() > 1) return 0;
  switch (std::toupper(static_cast<unsigned char>(suffix[0]))) {
    case 'K':
      return std::size_t{1} << 10;
    case 'M':
      return std::size_t{1} << 20;
    case 'G':
      return std::size_t{1} << 30;
    default:
      return 0;
  }
}

}  // namespace

std::string fitted(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:{}.{}f}", value, width, decimals);
    if (text.size() <= static_cast<std::size_t>(width)) return text;
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::size_t parseSize(const std::string& text) {
  constexpr double kLimit = 9.0e18;  // below 2^63, so that byte offsets stay signed
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::size_t unit = unitOf(end);
  const bool starts = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  if (!starts || unit == 0) {
    throw std::invalid_argument("'" + text +
                                "' is not a size; use bytes with K, M or G, as in 64K");
  }
  const double bytes = number * static_cast<double>(unit);
  if (!(bytes < kLimit)) throw std::invalid_argument("size '" + text + "' is too large");
  return static_cast<std::size_t>(bytes);
}

std::string memoryText(std::size_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KB", "MB", "GB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  const int decimals = amount < 10 ? 2 : amount < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", amount, decimals, kUnits[unit]);
}

std::vector<std::size_t> sizeSweep(std::size_t first, std::size_t last, std::size_t step,
                                   std::size_t factor) {
  std::vector<std::size_t> sizes;
  std::size_t size = first;
  while (size <= last) {
    sizes.push_back(size);
    std::size_t next = 0;
    const bool overflow = factor > 1 ? __builtin_mul_overflow(size, factor, &next)
                                     : __builtin_add_overflow(size, step, &next);
    if (overflow) break;
    if (factor > 1 && size == 0) next = kAfterZero;
    if (next == size) break;
    size = next;
  }
  return sizes;
}

}  // namespace weft::perf
