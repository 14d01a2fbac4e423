// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace weft::inline base {

// All of `digits` as a number; false if they are anything else. Integers may have a radix.
template <class Number, class... Radix>
bool parseNumber(std::string_view digits, Number* number, Radix... radix) {
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, *number, radix...);
  return error == std::errc() && rest == end;
}

}  // namespace weft::inline base
