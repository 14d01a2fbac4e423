// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "base/knobs.h"
#include "base/text.h"

namespace weft::docs {

// "a, b" of "a|b"
inline std::string listed(std::string_view choices) {
  std::string list;
  for (const char c : choices) list += c == '|' ? ", " : std::string(1, c);
  return list;
}

// The table of knobs as Markdown: name, type, default, meaning.
inline std::string knobsAsMarkdown() {
  static constexpr std::array kTypes = {"integer", "bytes", "flag", "choice", "text"};
  std::string page = "| Variable | Type | Default | Meaning |\n|---|---|---|---|\n";
  for (const KnobInfo& info : knobTable()) {
    const std::string type = info.type == KnobType::Choice
                                 ? listed(info.choices)
                                 : kTypes[static_cast<std::size_t>(info.type)];
    const std::string fallback = *info.fallback ? text('`', info.fallback, '`') : "(none)";
    page += text("| `", info.name, "` | ", type, " | ", fallback, " | ", info.doc, " |\n");
  }
  return page;
}

}  // namespace weft::docs
