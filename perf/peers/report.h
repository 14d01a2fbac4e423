// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind: tables for people, JSON for programs.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "summary.h"

namespace weft::peers {

// Markdown. First one table for each ranks x collective x mode: weft, the best peer, the floor and
// their ratios, as a median over the rounds with its range. Then the same with every contender's
// time. All times are medians over the rounds in microseconds.
void writeTables(std::ostream& out, const std::vector<Measurement>& measurements);

// {"machine": {...}, "summary": [{...}], "measurements": [{...}]}; times in microseconds.
void writeJson(std::ostream& out, const std::vector<Measurement>& measurements);

std::string sizeText(std::uint64_t bytes);         // 65536 -> "64K"
std::uint64_t parseSize(const std::string& text);  // "64K" -> 65536; throws std::invalid_argument
const char* modeName(Mode mode);

}  // namespace weft::peers
