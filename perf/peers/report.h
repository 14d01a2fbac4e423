// SPDX-License-Identifier: Apache-2.0
// The measurements of a run, and what is made of them: a table for people, JSON for programs.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "control.h"

namespace weft::peers {

// One contender's median at one point of one round.
struct Measurement {
  int ranks = 0;
  int round = 0;
  Collective collective{};
  Mode mode{};
  std::uint64_t bytes = 0;
  std::string contender;
  Timing timing;
};

// Markdown: one table for each ranks x collective x mode. A cell is the median over rounds in
// microseconds. Ratios are taken within each round and then their median, with the range: weft over
// the best peer of that round, weft over the floor (the faster of its forms) of that round.
void writeTables(std::ostream& out, const std::vector<Measurement>& measurements);

// {"machine": {...}, "measurements": [{...}]}; times in microseconds.
void writeJson(std::ostream& out, const std::vector<Measurement>& measurements);

std::string sizeText(std::uint64_t bytes);         // 65536 -> "64K"
std::uint64_t parseSize(const std::string& text);  // "64K" -> 65536; throws std::invalid_argument
const char* modeName(Mode mode);

}  // namespace weft::peers
