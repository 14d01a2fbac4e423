// SPDX-License-Identifier: Apache-2.0
// Pages that need nothing but themselves: no script, no other file. They are well-formed XML as well.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::train {

// As text or as the value of an attribute. What is no character of UTF-8, or none that XML allows,
// becomes U+FFFD.
std::string escaped(std::string_view text);

// From here on texts are given as they are, and escaped.

// The first row heads the columns, or with `byRow` the first cell of each row heads the row.
std::string table(const std::vector<std::vector<std::string>>& rows, bool byRow = false);

struct Tile {
  std::string name, value, more;
};
std::string tiles(const std::vector<Tile>& all);

// `content` is HTML.
std::string section(std::string_view title, std::string_view content);
std::string figure(std::string_view caption, std::string_view content);
std::string note(std::string_view text);
std::string page(std::string_view title, std::string_view subtitle, std::string_view content);

}  // namespace weft::train
