// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <tuple>

namespace weft::peers {
namespace {

constexpr std::string_view kWeft = "weft";
constexpr std::string_view kFloor = "floor";

using Rounds = std::map<int, double>;                // round -> microseconds
using Row = std::map<std::string, Rounds>;           // contender -> its rounds
using TableKey = std::tuple<int, Collective, Mode>;  // ranks, collective, mode
using Table = std::map<std::uint64_t, Row>;          // bytes -> row

bool isFloor(const std::string& name) { return name.substr(0, kFloor.size()) == kFloor; }
bool isWeft(const std::string& name) { return name.substr(0, kWeft.size()) == kWeft; }
bool isPeer(const std::string& name) { return !isWeft(name) && !isFloor(name); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median(const Rounds& rounds) {
  std::vector<double> values;
  for (const auto& [round, us] : rounds) values.push_back(us);
  return median(std::move(values));
}

// In each round, the fastest of the contenders that `wanted` names.
template <typename Predicate>
Rounds fastest(const Row& row, Predicate wanted) {
  Rounds best;
  for (const auto& [name, rounds] : row) {
    if (!wanted(name)) continue;
    for (const auto& [round, us] : rounds) {
      const auto [entry, isNew] = best.emplace(round, us);
      if (!isNew) entry->second = std::min(entry->second, us);
    }
  }
  return best;
}

std::string bestPeer(const Row& row) {
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, rounds] : row) {
    if (!isPeer(name) || median(rounds) >= least) continue;
    least = median(rounds);
    best = name;
  }
  return best;
}

std::string usText(double us) {
  return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.0f}", us);
}

// "0.91 (0.85-1.02)": median and range of a / b, paired by round.
std::string ratioText(const Rounds& a, const Rounds& b) {
  std::vector<double> ratios;
  for (const auto& [round, us] : a) {
    const auto other = b.find(round);
    if (other != b.end()) ratios.push_back(us / other->second);
  }
  if (ratios.empty()) return "-";
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return fmt::format("**{:.2f}** ({:.2f}-{:.2f})", median(ratios), *least, *most);
}

std::string rowText(std::uint64_t bytes, const Row& row, const std::vector<std::string>& columns) {
  std::string text = fmt::format("| {} |", sizeText(bytes));
  for (const std::string& name : columns) {
    const auto cell = row.find(name);
    text += cell == row.end() ? " - |" : fmt::format(" {} |", usText(median(cell->second)));
  }
  const Rounds peer = fastest(row, isPeer);
  const Rounds floor = fastest(row, isFloor);
  const auto weft = row.find(std::string(kWeft));
  const Rounds mine = weft == row.end() ? Rounds{} : weft->second;
  text += fmt::format(" {} | {} |", peer.empty() ? "-" : bestPeer(row),
                      floor.empty() ? "-" : usText(median(floor)));
  text += fmt::format(" {} | {} | {} |\n", ratioText(mine, peer), ratioText(mine, floor),
                      ratioText(peer, floor));
  return text;
}

void writeTable(std::ostream& out, const TableKey& key, const Table& table,
                const std::vector<std::string>& columns) {
  const auto& [ranks, collective, mode] = key;
  out << fmt::format("\n**{} fp32, {} ranks, {}** (us, median over rounds)\n\n| size |",
                     collectiveName(collective), ranks, modeName(mode));
  for (const std::string& name : columns) out << ' ' << name << " |";
  out << " best peer | floor | weft/best peer | weft/floor | best peer/floor |\n|---|";
  for (std::size_t i = 0; i < columns.size(); ++i) out << "---|";
  out << "---|---|---|---|---|\n";
  for (const auto& [bytes, row] : table) out << rowText(bytes, row, columns);
}

nlohmann::json machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line) && line.find("model name") != 0) {
  }
  const std::size_t colon = line.find(": ");
  return {{"cpu", colon == std::string::npos ? "unknown" : line.substr(colon + 2)},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)}};
}

}  // namespace

void writeTables(std::ostream& out, const std::vector<Measurement>& measurements) {
  std::map<TableKey, Table> tables;
  std::vector<std::string> columns;  // in the order of the run, floors apart
  for (const Measurement& m : measurements) {
    tables[{m.ranks, m.collective, m.mode}][m.bytes][m.contender][m.round] = m.timing.median;
    const bool known = std::find(columns.begin(), columns.end(), m.contender) != columns.end();
    if (!known && !isFloor(m.contender)) columns.push_back(m.contender);
  }
  std::sort(columns.begin(), columns.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(!isWeft(a), a) < std::make_tuple(!isWeft(b), b);
  });
  for (const auto& [key, table] : tables) writeTable(out, key, table, columns);
}

void writeJson(std::ostream& out, const std::vector<Measurement>& measurements) {
  nlohmann::json points = nlohmann::json::array();
  for (const Measurement& m : measurements) {
    points.push_back({{"ranks", m.ranks},
                      {"round", m.round},
                      {"collective", collectiveName(m.collective)},
                      {"mode", modeName(m.mode)},
                      {"bytes", m.bytes},
                      {"contender", m.contender},
                      {"median_us", m.timing.median},
                      {"min_us", m.timing.min},
                      {"max_us", m.timing.max},
                      {"repeats", m.timing.repeats},
                      {"calls_per_repeat", m.timing.calls}});
  }
  out << nlohmann::json{{"machine", machine()}, {"measurements", points}}.dump(1) << '\n';
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
