// SPDX-License-Identifier: Apache-2.0
#include "launch/hostlist.h"

#include <algorithm>
#include <cctype>

#include "base/invalid.h"
#include "base/number.h"
#include "base/text.h"

namespace weft::launch {
namespace {

using Names = std::vector<std::string>;

constexpr int kMostBrackets = 5;

bool isHostCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
}

// "7" or "08-11", appended to *out.
bool expandRange(std::string_view range, Names* out) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  unsigned first = 0, last = 0;
  if (std::max(low.size(), high.size()) > 9) return false;
  if (!parseNumber(low, &first) || !parseNumber(high, &last) || last < first) return false;
  if (out->size() + (last - first) >= kMaxHosts) return false;
  for (unsigned number = first; number <= last; ++number) {
    const std::string digits = std::to_string(number);
    out->push_back(std::string(low.size() - std::min(low.size(), digits.size()), '0') + digits);
  }
  return true;
}

// What stands between two brackets.
bool expandRanges(std::string_view ranges, Names* out) {
  for (;;) {
    const std::size_t comma = ranges.find(',');
    if (!expandRange(ranges.substr(0, comma), out)) return false;
    if (comma == std::string_view::npos) return true;
    ranges.remove_prefix(comma + 1);
  }
}

// Every prefix with every suffix, prefixes slowest.
bool multiply(const Names& suffixes, Names* prefixes) {
  if (prefixes->size() * suffixes.size() > kMaxHosts) return false;
  Names all;
  for (const std::string& prefix : *prefixes) {
    for (const std::string& suffix : suffixes) {
      if (prefix.size() + suffix.size() > kMaxHostBytes) return false;
      all.push_back(prefix + suffix);
    }
  }
  *prefixes = std::move(all);
  return true;
}

// One entry, "gnode[1-2]x[3]", from the front of *list up to its comma, which is left there.
bool expandEntry(std::string_view* list, Names* out) {
  Names names = {""};
  int brackets = 0;
  while (!list->empty() && list->front() != ',') {
    Names suffixes;
    if (list->front() == '[') {
      const std::size_t close = list->find(']');
      if (close == std::string_view::npos || ++brackets > kMostBrackets) return false;
      if (!expandRanges(list->substr(1, close - 1), &suffixes)) return false;
      list->remove_prefix(close + 1);
    } else {
      const auto end = std::find_if_not(list->begin(), list->end(), isHostCharacter);
      if (end == list->begin()) return false;
      suffixes.emplace_back(list->begin(), end);
      list->remove_prefix(suffixes.front().size());
    }
    if (!multiply(suffixes, &names)) return false;
  }
  const bool named = !names.front().empty();
  out->insert(out->end(), names.begin(), names.end());
  return named && out->size() <= kMaxHosts;
}

}  // namespace

Status expandHostlist(std::string_view list, std::vector<std::string>* hosts) {
  hosts->clear();
  std::string_view left = list;
  bool valid = expandEntry(&left, hosts);
  while (valid && !left.empty()) {
    left.remove_prefix(1);  // the comma
    valid = expandEntry(&left, hosts);
  }
  if (valid) return {};
  hosts->clear();
  return invalid("malformed host list \"", list.substr(0, 200), '"');
}

}  // namespace weft::launch
