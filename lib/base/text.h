// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace weft {

namespace detail {
inline void append(std::string& to, std::string_view part) { to += part; }
inline void append(std::string& to, char part) { to += part; }
template <class Number>
requires std::integral<Number> || std::floating_point<Number>
void append(std::string& to, Number part) { to += std::to_string(part); }
}  // namespace detail

// Joins words and numbers into one line: text("rank ", 3, " of ", 8). For errors and logs only.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string line;
  (detail::append(line, parts), ...);
  return line;
}

}  // namespace weft
