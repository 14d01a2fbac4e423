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

void sortByWeight(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) {
    return std::tie(a.severity, a.weight) > std::tie(b.severity, b.weight);
  });
}

}  // namespace weft::checks
