// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace weft::checks {

const char* nameOf(Severity severity) {
  constexpr const char* kNames[] = {"note", "warning", "fault"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::string toText(const Finding& finding) {
  return fmt::format("{}: {}: {} [{}]\n  fix: {}\n", nameOf(finding.severity), finding.culprit,
                     finding.what, finding.kind, finding.fix);
}

Advice adviceOf(const std::string& line) {
  constexpr std::string_view kFix = "fix: ";
  const std::size_t at = line.rfind(kFix);
  if (at == line.npos) return {line, {}};
  std::string what = line.substr(0, at);
  what.resize(what.find_last_not_of(" .;") + 1);
  return {what, line.substr(at + kFix.size())};
}

void sortByWeight(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) {
    return std::tie(a.severity, a.weight) > std::tie(b.severity, b.weight);
  });
}

}  // namespace weft::checks
