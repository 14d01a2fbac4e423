// SPDX-License-Identifier: Apache-2.0
#include "tools/health/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "perf/common/median.h"
#include "perf/common/report_file.h"
#include "tools/checks/kinds.h"
#include "tools/health/summary.h"

namespace weft::health {
namespace {

constexpr std::size_t kMostRuns = 100, kLeastRuns = 3;
constexpr double kWorse = 1.5;
constexpr int kDeepest = 4;  // {"runs": [{"figures": {"us of ...": 1}}]}

std::string shapeOf(const Evidence& evidence) {
  std::vector<std::string> hosts;
  for (const Member& member : evidence.members) hosts.push_back(member.host);
  std::ranges::sort(hosts);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return fmt::format("{} ranks on {} hosts", evidence.members.size(), hosts.size());
}

std::runtime_error complaint(const std::string& path, const char* what) {
  return std::runtime_error(
      fmt::format("{} {}; fix: name a history that weft-health wrote, or a file that does not "
                  "exist yet",
                  path, what));
}

bool isRun(const nlohmann::json& run) {
  return run.is_object() && run.contains("shape") && run["shape"].is_string() &&
         run.contains("figures") && run["figures"].is_object() &&
         std::ranges::all_of(run["figures"], [](const auto& value) { return value.is_number(); });
}

}  // namespace

std::map<std::string, double> figuresOf(const Evidence& evidence) {
  std::map<std::string, double> figures;
  for (const auto& [name, kind] : summarize(evidence)) {
    if (kind.gigabytes.middle > 0) figures["s/GB of links " + name] = 1 / kind.gigabytes.middle;
    if (kind.microseconds.middle > 0) figures["us of links " + name] = kind.microseconds.middle;
  }
  for (const CollectiveRow& row : evidence.collectives.rows)
    if (row.microseconds > 0)
      figures[fmt::format("us of {} of {} bytes", row.name, row.bytes)] = row.microseconds;
  for (const checks::HostReport& host : evidence.hosts) {
    const checks::Fact* const bandwidth = host.find("memory.bandwidth");
    if (bandwidth != nullptr && bandwidth->value > 0)
      figures["s/GB of memory of host " + host.host] = 1 / bandwidth->value;
  }
  return figures;
}

Baseline Baseline::read(const std::string& path) {
  Baseline baseline;
  if (!std::filesystem::is_regular_file(path)) return baseline;  // devices remember nothing
  std::ifstream file(path);
  if (file.peek() == std::ifstream::traits_type::eof()) return baseline;
  const nlohmann::json::parser_callback_t shallow = [](int depth, auto, auto&) {
    return depth <= kDeepest;
  };
  const nlohmann::json json = nlohmann::json::parse(file, shallow, false);
  if (!json.is_object() || !json.contains("tool") || json["tool"] != "weft-health" ||
      !json.contains("runs"))
    throw complaint(path, "is not a history of weft-health");
  if (!json["runs"].is_array() || !std::ranges::all_of(json["runs"], isRun))
    throw complaint(path, "is a damaged history");
  baseline.runs_ = json["runs"];
  return baseline;
}

std::vector<checks::Finding> Baseline::compare(const Evidence& evidence) const {
  std::vector<checks::Finding> findings;
  for (const auto& [name, value] : figuresOf(evidence)) {
    std::vector<double> earlier;
    for (const auto& run : runs_)
      if (run["shape"] == shapeOf(evidence) && run["figures"].contains(name))
        earlier.push_back(run["figures"][name]);
    if (earlier.size() < kLeastRuns || value < kWorse * tools::median(earlier)) continue;
    if (value <= std::ranges::max(earlier)) continue;
    findings.push_back(
        checks::makeFinding("slower-than-before", "the job",
                            fmt::format("{}: {:.4g}, in {} earlier runs {:.4g} (median)", name,
                                        value, earlier.size(), tools::median(earlier)),
                            value / tools::median(earlier)));
  }
  return findings;
}

void Baseline::add(const Evidence& evidence) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  runs_.push_back({{"shape", shapeOf(evidence)},
                   {"unix_time", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                   {"figures", figuresOf(evidence)}});
  while (runs_.size() > kMostRuns) runs_.erase(runs_.begin());
}

void Baseline::write(const std::string& path) const {
  const nlohmann::json history{{"tool", "weft-health"}, {"runs", runs_}};
  tools::ReportFile(path).write(history.dump(1) + '\n');
}

}  // namespace weft::health
