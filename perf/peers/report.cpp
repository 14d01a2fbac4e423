// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "perf/common/machine.h"

namespace weft::peers {
namespace {

std::string usText(std::optional<double> us) {
  if (!us) return "-";
  return *us < 100 ? fmt::format("{:.2f}", *us) : fmt::format("{:.0f}", *us);
}

// "**0.91** (0.85-1.02)"
std::string ratioText(const std::optional<Ratio>& ratio) {
  if (!ratio) return "-";
  return fmt::format("**{:.2f}** ({:.2f}-{:.2f})", ratio->median, ratio->least, ratio->most);
}

std::string peerText(const Summary& s) { return s.peer ? usText(s.peer) + ' ' + s.bestPeer : "-"; }

std::string titleOf(const Series& series) {
  return fmt::format("**{} fp32, {} ranks, {}**", collectiveName(series.collective), series.ranks,
                     modeName(series.mode));
}

void writeHeader(std::ostream& out, const std::vector<std::string>& columns) {
  for (const std::string& name : columns) out << "| " << name << ' ';
  out << "|\n";
  for (std::size_t i = 0; i < columns.size(); ++i) out << "|---";
  out << "|\n";
}

void writeRatios(std::ostream& out, const Series& series) {
  out << '\n' << titleOf(series) << "\n\n";
  writeHeader(out, {"size", "any", "own", "threads", "best peer", "floor", "any / peer",
                    "own / peer", "any / floor", "own / floor", "threads / any"});
  for (const auto& [bytes, point] : series.points) {
    const Summary s = summarize(point);
    out << fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                       sizeText(bytes), usText(s.any), usText(s.own), usText(s.threads),
                       peerText(s), usText(s.floor), ratioText(s.anyToPeer), ratioText(s.ownToPeer),
                       ratioText(s.anyToFloor), ratioText(s.ownToFloor), ratioText(s.threadsToAny));
  }
}

void writeTimes(std::ostream& out, const Series& series, const std::vector<std::string>& names) {
  out << '\n' << titleOf(series) << "\n\n";
  std::vector<std::string> columns = {"size"};
  columns.insert(columns.end(), names.begin(), names.end());
  writeHeader(out, columns);
  for (const auto& [bytes, point] : series.points) {
    out << "| " << sizeText(bytes) << ' ';
    for (const std::string& name : names) {
      const auto found = point.find(name);
      out << "| " << (found == point.end() ? "-" : usText(median(found->second))) << ' ';
    }
    out << "|\n";
  }
}

nlohmann::json jsonOf(std::optional<double> us) { return us ? nlohmann::json(*us) : nullptr; }

nlohmann::json jsonOf(const std::optional<Ratio>& ratio) {
  if (!ratio) return nullptr;
  return {{"median", ratio->median}, {"min", ratio->least}, {"max", ratio->most}};
}

nlohmann::json summaryJson(const Series& series, std::uint64_t bytes, const Point& point) {
  const Summary s = summarize(point);
  return {{"ranks", series.ranks},
          {"collective", collectiveName(series.collective)},
          {"mode", modeName(series.mode)},
          {"bytes", bytes},
          {"any_us", jsonOf(s.any)},
          {"own_us", jsonOf(s.own)},
          {"threads_us", jsonOf(s.threads)},
          {"peer_us", jsonOf(s.peer)},
          {"best_peer", s.bestPeer},
          {"floor_us", jsonOf(s.floor)},
          {"any_to_peer", jsonOf(s.anyToPeer)},
          {"own_to_peer", jsonOf(s.ownToPeer)},
          {"any_to_floor", jsonOf(s.anyToFloor)},
          {"own_to_floor", jsonOf(s.ownToFloor)},
          {"peer_to_floor", jsonOf(s.peerToFloor)},
          {"threads_to_any", jsonOf(s.threadsToAny)}};
}

nlohmann::json measurementJson(const Measurement& m) {
  return {{"ranks", m.ranks},
          {"round", m.round},
          {"collective", collectiveName(m.collective)},
          {"mode", modeName(m.mode)},
          {"bytes", m.bytes},
          {"contender", m.contender},
          {"median_us", m.timing.median},
          {"min_us", m.timing.min},
          {"max_us", m.timing.max},
          {"repeats", m.timing.repeats},
          {"calls_per_repeat", m.timing.calls}};
}

}  // namespace

void writeTables(std::ostream& out, const std::vector<Measurement>& measurements) {
  const std::vector<Series> all = arrange(measurements);
  for (const Series& series : all) writeRatios(out, series);
  out << "\n## Every contender\n";
  for (const Series& series : all) writeTimes(out, series, contenderNames(measurements));
}

void writeJson(std::ostream& out, const std::vector<Measurement>& measurements) {
  nlohmann::json summaries = nlohmann::json::array();
  for (const Series& series : arrange(measurements)) {
    for (const auto& [bytes, point] : series.points) {
      summaries.push_back(summaryJson(series, bytes, point));
    }
  }
  nlohmann::json points = nlohmann::json::array();
  for (const Measurement& m : measurements) points.push_back(measurementJson(m));
  const nlohmann::json machine = {{"cpu", tools::processorName()},
                                  {"kind", tools::processorKind()},
                                  {"cores", sysconf(_SC_NPROCESSORS_ONLN)}};
  out << nlohmann::json{{"machine", machine}, {"summary", summaries}, {"measurements", points}}
             .dump(1)
      << '\n';
}

std::string sizeText(std::uint64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

std::uint64_t parseSize(const std::string& text) {
  std::size_t digits = 0;
  std::uint64_t value = 0;
  try {
    value = std::stoull(text, &digits);
  } catch (const std::exception&) {
    digits = 0;
  }
  const std::string unit = text.substr(digits);
  if (digits > 0 && unit.empty()) return value;
  if (digits > 0 && unit == "K") return value << 10;
  if (digits > 0 && unit == "M") return value << 20;
  throw std::invalid_argument(fmt::format("'{}' is not a size; write 8, 64K or 16M", text));
}

const char* modeName(Mode mode) { return mode == Mode::Fresh ? "fresh" : "steady"; }

}  // namespace weft::peers
