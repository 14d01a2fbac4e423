// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/kinds.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::checks {
namespace {

constexpr bool onlyFaultsHaveExitCodes() {
  return std::ranges::all_of(kKinds, [](const Kind& kind) {
    return (kind.severity == Severity::Fault) == (kind.exitCode != 0);
  });
}
static_assert(onlyFaultsHaveExitCodes());

}  // namespace

Finding makeFinding(KindName name, std::string culprit, std::string what, double weight,
                    std::string fix) {
  const Kind& kind = name.kind();
  if (what.ends_with('.')) what.pop_back();
  return {kind.severity,
          std::string(kind.name),
          std::move(culprit),
          std::move(what),
          fix.empty() ? std::string(kind.fix) : std::move(fix),
          weight};
}

int exitCodeOf(std::span<const Finding> findings) {
  const Finding* worst = nullptr;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::Fault && (!worst || finding.weight > worst->weight))
      worst = &finding;
  }
  if (worst == nullptr) return tools::kExitHealthy;
  const auto* const kind = std::ranges::find(kKinds, worst->kind, &Kind::name);
  return kind != std::end(kKinds) ? kind->exitCode : tools::kExitBad;
}

std::string kindsAsMarkdown() {
  std::string page;
  for (const Kind& kind : kKinds) {
    page += fmt::format("### {}\n\n{}{}. {}\n\n- Cause: {}\n- Fix: {}.\n\n", kind.name,
                        nameOf(kind.severity),
                        kind.exitCode != 0 ? fmt::format(", exit code {}", kind.exitCode) : "",
                        kind.meaning, kind.cause, kind.fix);
  }
  return page;
}

}  // namespace weft::checks
