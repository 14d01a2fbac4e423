// SPDX-License-Identifier: Apache-2.0
#include "tools/health/run.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <sstream>

#include "perf/common/median.h"
#include "tools/checks/json.h"
#include "tools/checks/nics.h"
#include "tools/health/sweep.h"

namespace weft::health {
namespace {

constexpr double kHostPart = 0.12, kPairsPart = 0.25, kConfirmPart = 0.15,
                 kCollectivesPart = 0.2;  // of the budget
constexpr double kMostPairsSeconds = 12, kMostCollectivesSeconds = 8;
constexpr int kTurns = 4;

std::uint64_t agreeOnSeed(const Options& options, Crew& crew) {
  const std::uint64_t mine = options.seed != 0 ? options.seed : std::random_device()();
  const std::string text = crew.hear(std::to_string(mine));
  std::uint64_t seed = 0;
  std::from_chars(text.data(), text.data() + text.size(), seed);
  return seed;
}

// The kind of way to each peer: "ranks 1-3,5: shm" for each line of weftCommEdges.
void readWays(const std::string& text, std::size_t me, std::size_t ranks, Ways* ways) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("rank") || colon == std::string::npos) continue;
    std::istringstream spans(line.substr(line.find(' ') + 1, colon - line.find(' ') - 1));
    for (std::string span; std::getline(spans, span, ',');) {
      std::size_t first = 0, last = 0;
      const char* const end = span.data() + span.size();
      const char* const dash = std::from_chars(span.data(), end, first).ptr;
      last = first;
      if (dash != end) std::from_chars(dash + 1, end, last);
      for (std::size_t peer = first; peer <= std::min(last, ranks - 1); ++peer)
        (*ways)[me * ranks + peer] = line.substr(colon + 2, line.find(", ", colon) - colon - 2);
    }
  }
}

Ways askWays(Crew& crew) {
  std::string text(1 << 16, '\0');
  check(weftCommEdges(crew.comm(), text.data(), text.size()), crew.comm());
  const auto all = crew.gather(std::string(text.c_str()));
  Ways ways(all.size() * all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    readWays(all[rank], rank, all.size(), &ways);
  return ways;
}

// One rank of each host runs the checks, while the others wait for it.
void checkHosts(const Options& options, Crew& crew, Progress& progress, Evidence* evidence) {
  const double seconds = std::min(kHostPart * options.budget(), checks::kHostSeconds);
  crew.allow(static_cast<int>(2e3 + seconds * 4e3));  // on a busy host all takes longer
  std::optional<checks::HostReport> mine;
  if (options.hostChecks && crew.me().localIndex == 0) {
    mine = checks::checkHost({.seconds = seconds, .root = {}},
                             [&](double done, std::string_view) { progress.at(done); });
  }
  crew.barrier();  // so that clocks are read at the same moment
  if (mine) checks::stampClock(*mine);
  const auto all = crew.gather(mine ? toJson(*mine).dump() : std::string());
  crew.allow(0);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const auto report = checks::reportFromJson(nlohmann::json::parse(all[rank], nullptr, false));
    if (report) evidence->hosts.push_back(*report);
  }
}

// A rank that seems short of its core gets a second chance, with longer turns.
void checkCores(Crew& crew, double seconds, Evidence* evidence) {
  const int most = 1 + std::ranges::max(crew.members(), {}, &Member::localIndex).localIndex;
  const double turn = std::clamp(seconds / kTurns / most, 0.03, 0.05);
  evidence->shares = measureShares(crew, turn, kTurns);
  if (starved(crew.members(), evidence->shares).empty()) return;
  evidence->shares = measureShares(crew, 2 * turn, kTurns);
  evidence->starved = starved(crew.members(), evidence->shares);
}

// Where ranks do not get their cores, the scheduler slows links down as well.
Tolerance toleranceFor(const Evidence& evidence) {
  std::vector<double> shares;
  for (const CoreShare& share : evidence.shares) shares.push_back(share.share);
  return tools::median(shares) < 0.8 ? Tolerance::onBusyHosts() : Tolerance();
}

void checkPairs(const Options& options, Crew& crew, std::uint64_t seed, Progress& progress,
                Evidence* evidence) {
  PairProbe probe(crew, seed, options.quick ? 0.002 : 0.004);
  const SweepOptions sweeps{.seconds = std::min(kPairsPart * options.budget(), kMostPairsSeconds)};
  evidence->pairs = Matrix(crew.size());
  evidence->sweeps = sweepPairs(crew, probe, sweeps, &evidence->pairs,
                                [&](double done) { progress.at(done * 0.9); });
  const Tolerance tolerance = toleranceFor(*evidence);
  evidence->suspects =
      confirm(crew, probe, findSuspects(evidence->pairs, crew.members(), evidence->ways, tolerance),
              tolerance, kConfirmPart * options.budget(), &evidence->pairs);
}

// So many bytes that the slowest link still takes them quickly.
std::size_t largestMessage(const Matrix& pairs) {
  double slowest = 1e3;
  for (int from = 0; from < pairs.ranks(); ++from)
    for (int to = 0; to < pairs.ranks(); ++to)
      if (from != to) slowest = std::min(slowest, pairs.at(from, to).gigabytes);
  constexpr double kSeconds = 0.05, kLeast = 64 << 10, kMost = 4 << 20;
  return static_cast<std::size_t>(std::clamp(slowest * 1e9 * kSeconds, kLeast, kMost));
}

// Counters of the hosts' network devices that rose between the first phase and now.
class CounterWatch {
 public:
  explicit CounterWatch(const Crew& crew) : wanted_(crew.me().localIndex == 0) {
    if (wanted_) before_ = checks::readNics();
  }
  void compare(Crew& crew, Evidence* evidence) {
    nlohmann::json mine = nlohmann::json::array();
    if (wanted_) {
      for (const auto& finding :
           checks::compareCounters(crew.me().host, before_, checks::readNics()))
        mine.push_back(toJson(finding));
    }
    for (const std::string& text : crew.gather(mine.dump())) {
      for (const auto& json : nlohmann::json::parse(text, nullptr, false)) {
        const auto finding = checks::findingFromJson(json);
        if (finding) evidence->counters.push_back(*finding);
      }
    }
  }

 private:
  bool wanted_;
  std::vector<checks::Nic> before_;
};

}  // namespace

void examine(const Options& options, Crew& crew, Progress& progress, Evidence* evidence) {
  evidence->members = crew.members();
  evidence->ways = askWays(crew);
  const std::uint64_t seed = agreeOnSeed(options, crew);
  CounterWatch counters(crew);
  progress.phase("hosts", 0, 0.15);
  checkHosts(options, crew, progress, evidence);
  if (crew.size() > 1) {
    progress.phase("cores", 0.15, 0.2);
    checkCores(crew, 0.05 * options.budget(), evidence);
    progress.phase("pairs", 0.2, 0.65);
    checkPairs(options, crew, seed, progress, evidence);
    progress.phase("collectives", 0.65, 1);
    const double seconds = std::min(kCollectivesPart * options.budget(), kMostCollectivesSeconds);
    const CollectiveOptions collectives{
        .seed = seed, .seconds = seconds, .largest = largestMessage(evidence->pairs)};
    evidence->collectives =
        testCollectives(crew, collectives, [&](double done) { progress.at(done); });
  }
  if (options.hostChecks) counters.compare(crew, evidence);
  evidence->garbled = crew.garbled();
}

}  // namespace weft::health
