// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/json.h"

#include <algorithm>

#include "perf/common/error_json.h"

namespace weft::checks {
namespace {

using nlohmann::json;

json toJson(const Fact& fact) {
  if (!fact.text.empty()) return {{"name", fact.name}, {"text", fact.text}};
  return {{"name", fact.name}, {"value", fact.value}, {"unit", fact.unit}};
}

Fact factFromJson(const json& from) {
  return {from.at("name").get<std::string>(), from.value("value", 0.0),
          from.value("text", std::string()), from.value("unit", std::string())};
}

Severity severityNamed(const std::string& name) {
  for (const Severity severity : {Severity::Note, Severity::Warning, Severity::Fault}) {
    if (name == nameOf(severity)) return severity;
  }
  throw std::invalid_argument("no such severity");
}

Finding findingFrom(const json& from) {
  return {severityNamed(from.at("severity").get<std::string>()),
          from.at("kind").get<std::string>(),
          from.at("culprit").get<std::string>(),
          from.at("what").get<std::string>(),
          from.at("fix").get<std::string>(),
          from.at("weight").get<double>()};
}

}  // namespace

json toJson(const Finding& finding) {
  json json = {{"severity", nameOf(finding.severity)},
               {"kind", finding.kind},
               {"culprit", finding.culprit},
               {"what", finding.what},
               {"fix", finding.fix},
               {"weight", finding.weight}};
  if (finding.error) json["error"] = tools::errorJson<nlohmann::json>(*finding.error);
  return json;
}

json toJson(const HostReport& report) {
  json facts = json::array(), findings = json::array();
  for (const Fact& fact : report.facts) facts.push_back(toJson(fact));
  for (const Finding& finding : report.findings) findings.push_back(toJson(finding));
  return {{"host", report.host}, {"facts", facts}, {"findings", findings}};
}

std::optional<Finding> findingFromJson(const json& from) try {
  return findingFrom(from);
} catch (const std::exception&) {
  return {};
}

std::optional<HostReport> reportFromJson(const json& from) try {
  HostReport report;
  report.host = from.at("host").get<std::string>();
  for (const json& fact : from.at("facts")) report.facts.push_back(factFromJson(fact));
  for (const json& finding : from.at("findings")) report.findings.push_back(findingFrom(finding));
  return report;
} catch (const std::exception&) {
  return {};
}

}  // namespace weft::checks
