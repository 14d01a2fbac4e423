// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/changes.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "base/number.h"

namespace weft::simulator {
namespace {

constexpr std::string_view kAll = "all";

double factorOf(std::string_view text, double most) {
  double factor = 0;
  if (!parseNumber(text, &factor) || !(factor > 0 && factor <= most))
    throw std::invalid_argument(
        fmt::format("'{}' is no factor above 0 and up to {:g}", text, most));
  return factor;
}

}  // namespace

sim::Change parseChange(const std::string& text, double factor) {
  const std::size_t colon = text.find(':');
  const std::string node = text.substr(0, colon);
  sim::Change change{.link = colon == text.npos ? "" : text.substr(colon + 1), .factor = factor};
  if ((node != kAll && !parseNumber(node, &change.node)) || change.link.empty())
    throw std::invalid_argument(fmt::format(
        "'{}' is no link: name a node, or all, and a pair of its ranks or a rail, as 0:2-3 or "
        "all:efa0",
        text));
  return change;
}

sim::Change parseSlowLink(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || text.find(':') == colon)
    throw std::invalid_argument(
        fmt::format("'{}' is no slow link: name it and its factor, as 0:2-3:0.25", text));
  return parseChange(text.substr(0, colon), factorOf(std::string_view(text).substr(colon + 1), 1));
}

sim::Straggler parseStraggler(const std::string& text) {
  const std::size_t colon = text.find(':');
  sim::Straggler straggler;
  if (colon == text.npos || !parseNumber(text.substr(0, colon), &straggler.rank))
    throw std::invalid_argument(
        fmt::format("'{}' is no straggler: name its rank and how slow it is, as 5:1.5", text));
  straggler.factor = factorOf(std::string_view(text).substr(colon + 1), 1e6);
  return straggler;
}

}  // namespace weft::simulator
