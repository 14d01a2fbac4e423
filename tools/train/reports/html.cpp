// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tools/train/reports/plot.h"

namespace weft::train {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

constexpr const char* kStyle = R"(
* { box-sizing: border-box }
body { margin: 0; background: #f6f7f9; color: #1f2933; font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 56px }
h1 { margin: 0; font-size: 26px; font-weight: 650; letter-spacing: -0.01em; overflow-wrap: anywhere }
h2 { margin: 40px 0 14px; font-size: 17px; font-weight: 650 }
p { margin: 8px 0 0; color: #5b6673; overflow-wrap: anywhere }
.tiles, .charts { display: grid; gap: 14px }
.tiles { margin-top: 24px; grid-template-columns: repeat(auto-fill, minmax(128px, 1fr)) }
.charts { grid-template-columns: repeat(auto-fill, minmax(min(440px, 100%), 1fr)) }
.tile, figure, .sheet { background: #fff; border: 1px solid #e4e7eb; border-radius: 10px }
.tile { padding: 12px 14px }
.tile span { display: block; color: #5b6673; font-size: 13px }
.tile b { display: block; font-size: 21px; font-weight: 650; font-variant-numeric: tabular-nums }
figure { margin: 0; padding: 14px 16px 8px }
figcaption { font-size: 14px; font-weight: 600 }
.sheet { overflow-x: auto; padding: 4px 16px }
table { width: 100%; border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums }
th, td { padding: 7px 14px 7px 0; text-align: left; vertical-align: top }
th { font-weight: 600; color: #5b6673 }
td { overflow-wrap: anywhere }
tr + tr > * { border-top: 1px solid #eef0f3 }
.rows th { width: 34% }
.charts + .sheet { margin-top: 14px }
details { margin-top: 14px } summary { cursor: pointer; color: #5b6673; margin-bottom: 10px }
)";

// How many bytes the character at the beginning has; 0 if there is none that XML allows (Unicode 15,
// table 3-7; XML 1.0, 2.2).
size_t characterAt(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const uint32_t first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r';
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  uint32_t code = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = code >= 0xd800 && code < 0xe000;
  const bool isAllowed =
      first >= 0xc2 && first <= 0xf4 && code >= kLeast[length] && code <= 0x10ffff;
  return isAllowed && !isSurrogate && code != 0xfffe && code != 0xffff ? length : 0;
}

std::string_view entityOf(char character) {
  switch (character) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string row(const std::vector<std::string>& cells, bool isHead, bool byRow) {
  std::string html = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    const char* kind = isHead || (byRow && i == 0) ? "th" : "td";
    html += fmt::format("<{0}>{1}</{0}>", kind, escaped(cells[i]));
  }
  return html + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const size_t length = characterAt(text);
    const std::string_view entity = entityOf(text[0]);
    html += length == 0 ? kReplacement : entity.empty() ? text.substr(0, length) : entity;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return html;
}

std::string table(const std::vector<std::vector<std::string>>& rows, bool byRow) {
  std::string html =
      fmt::format("<div class=\"sheet\"><table{}>\n", byRow ? " class=\"rows\"" : "");
  for (size_t i = 0; i < rows.size(); ++i) html += row(rows[i], i == 0 && !byRow, byRow);
  return html + "</table></div>\n";
}

std::string tiles(const std::vector<Tile>& all) {
  std::string html = "<div class=\"tiles\">\n";
  for (const Tile& each : all)
    html += fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b><span>{}</span></div>\n",
                        escaped(each.name), escaped(each.value), escaped(each.more));
  return html + "</div>\n";
}

std::string section(std::string_view title, std::string_view content) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(title), content);
}

std::string figure(std::string_view caption, std::string_view content) {
  return fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}</figure>\n", escaped(caption),
                     content);
}

std::string note(std::string_view text) { return fmt::format("<p>{}</p>\n", escaped(text)); }

std::string page(std::string_view title, std::string_view subtitle, std::string_view content) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{0}</title>\n<style>{1}{2}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n"
      "<p>{3}</p>\n{4}</main>\n</body>\n</html>\n",
      escaped(title), kStyle, plotStyle(), escaped(subtitle), content);
}

}  // namespace weft::train
