// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/checks/json.h"
#include "tools/checks/kinds.h"
#include "tools/checks/units.h"

namespace weft::doctor {
namespace {

using checks::Fact;
using checks::Finding;
using checks::HostReport;
using checks::Severity;

std::string countOf(const HostReport& report, Severity severity) {
  const auto count = std::ranges::count(report.findings, severity, &Finding::severity);
  return fmt::format("{} {}{}", count, nameOf(severity), count == 1 ? "" : "s");
}

std::string textOf(const HostReport& report, std::string_view name) {
  const Fact* fact = report.find(name);
  return fact == nullptr ? "nothing" : fact->text;
}

// Groups in the order in which they first appear.
std::vector<std::string> groupsOf(const HostReport& report) {
  std::vector<std::string> groups;
  for (const Fact& fact : report.facts) {
    const std::string group = fact.name.substr(0, fact.name.find('.'));
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::string factsAsText(const HostReport& report) {
  std::string text;
  for (const std::string& group : groupsOf(report)) {
    text += group + "\n";
    for (const Fact& fact : report.facts) {
      if (fact.name.starts_with(group + "."))
        text += fmt::format("  {:<22} {}\n", fact.name.substr(group.size() + 1), valueOf(fact));
    }
  }
  return text;
}

}  // namespace

std::string verdictOf(const HostReport& report) {
  const auto fault = std::ranges::find(report.findings, Severity::Fault, &Finding::severity);
  if (fault != report.findings.end())
    return fmt::format("host {} must not run a job ({}): {}: {}", report.host,
                       countOf(report, Severity::Fault), fault->culprit, fault->what);
  const bool warned = std::ranges::find(report.findings, Severity::Warning, &Finding::severity) !=
                      report.findings.end();
  return fmt::format(
      "host {} {}; ranks here are joined by {}, hosts by {}", report.host,
      warned ? fmt::format("can run a job, with {}", countOf(report, Severity::Warning))
             : "is healthy",
      textOf(report, "transport.between-processes"), textOf(report, "transport.between-hosts"));
}

std::string toText(const HostReport& report) {
  std::string text = verdictOf(report) + "\n";
  for (const Finding& finding : report.findings)
    text += fmt::format("\n{}", checks::toText(finding));
  return fmt::format("{}\n{}", text, factsAsText(report));
}

nlohmann::json toJson(const HostReport& report) {
  nlohmann::json json = checks::toJson(report);
  json["tool"] = "weft-doctor";
  json["verdict"] = verdictOf(report);
  json["exit_code"] = checks::exitCodeOf(report.findings);
  return json;
}

}  // namespace weft::doctor
