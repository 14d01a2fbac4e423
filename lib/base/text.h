// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace weft::inline base {

namespace detail {
inline void append(std::string& to, std::string_view part) { to += part; }
inline void append(std::string& to, char part) { to += part; }
template <class Number>
requires std::integral<Number> || std::floating_point<Number>
void append(std::string& to, Number part) { to += std::to_string(part); }
template <class Named>
requires requires(const Named& part) {
  { describe(part) } -> std::same_as<std::string>;
}
void append(std::string& to, const Named& part) { to += describe(part); }
}  // namespace detail

// Joins words, numbers and whatever describe() puts into words into one line: text("rank ", 3, " of
// ", 8). For errors and logs only.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string line;
  (detail::append(line, parts), ...);
  return line;
}

// What wordsOf says of each item, a function or a member: "eth0, eth1".
template <class Items, class WordsOf>
std::string joined(const Items& items, std::string_view separator, WordsOf wordsOf) {
  std::string line;
  for (bool first = true; const auto& item : items) {
    if (!std::exchange(first, false)) line += separator;
    line += std::invoke(wordsOf, item);
  }
  return line;
}

}  // namespace weft::inline base
