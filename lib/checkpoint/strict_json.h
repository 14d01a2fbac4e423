// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

namespace weft::checkpoint {

inline constexpr int kDeepest = 4;  // of all that a checkpoint has

// The object that `content` is as JSON, if no key comes twice in an object, none has more than
// `mostKeys` of them, and it is no deeper than its format: nlohmann's copies and prints recurse,
// and its ordered objects look a key up in all others.
template <class Json>
std::optional<Json> parseStrictly(const std::string& content, std::size_t mostKeys = SIZE_MAX) {
  std::array<std::set<std::string>, kDeepest + 2> keys;
  bool strict = true;
  const typename Json::parser_callback_t look = [&](int depth, auto event, Json& parsed) {
    if (depth > kDeepest) strict = false;
    if (!strict) return false;
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) keys[level + 1].clear();
    if (event == Json::parse_event_t::key)
      strict = keys[level].insert(parsed.template get<std::string>()).second &&
               keys[level].size() <= mostKeys;
    return strict;
  };
  Json json = Json::parse(content, look, false);
  if (!strict || !json.is_object()) return std::nullopt;
  return json;
}

}  // namespace weft::checkpoint
