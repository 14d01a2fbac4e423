// SPDX-License-Identifier: Apache-2.0
#include "tools/train/launched_scaling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "tools/train/agreement.h"
#include "tools/train/options_check.h"
#include "tools/train/reports/host_name.h"
#include "tools/train/run_rank.h"
#include "tools/train/scaling.h"

namespace weft::train {
namespace {

using HostName = std::array<char, 256>;

std::vector<std::string> hostsOfRanks(Communicator& world) {
  HostName mine{};
  hostName().copy(mine.data(), mine.size() - 1);
  std::vector<HostName> all(static_cast<size_t>(world.size()));
  world.allGather(reinterpret_cast<const int8_t*>(mine.data()),
                  reinterpret_cast<int8_t*>(all.data()), mine.size());
  std::vector<std::string> names;
  for (const HostName& name : all) names.emplace_back(name.data());
  return names;
}

Options optionsOfRun(const Options& table, int ranks, bool independent) {
  Options run = table;
  for (std::string* file : {&run.svg, &run.report, &run.json, &run.csv}) file->clear();
  run.scaling.clear();
  run.quiet = true;
  run.threads = threadsOfScaling(table);
  run.seconds = table.scalingSeconds;
  run.steps = 1'000'000;
  run.independent = independent;
  validate(run);
  return forRanks(run, ranks);
}

// A deadline for those that wait while others train: as long as that takes, and as long as any call may.
weftOpts_t whileOthersTrain(const Options& options) {
  constexpr double kOperationMs = 600'000;
  weftOpts_t patient = WEFT_OPTS_INITIALIZER;
  patient.timeoutMs = static_cast<int>(std::min(1e3 * options.scalingSeconds + kOperationMs, 2e9));
  return patient;
}

Throughput measure(const Options& options, Communicator& world, int ranks, bool independent) {
  std::array<double, 3> figures{};
  Communicator some = world.split(world.rank() < ranks ? 0 : WEFT_SPLIT_NOCOLOR, world.rank());
  if (some) {
    Summary summary;
    const int code = trainOn(optionsOfRun(options, ranks, independent), some, &summary);
    figures = {summary.sequencesPerSecond, summary.exposedMs, static_cast<double>(code)};
  }
  const weftOpts_t patient = whileOthersTrain(options);
  world.broadcast(figures.data(), figures.data(), figures.size(), 0, {nullptr, &patient});
  if (figures[2] != 0) {
    throw SharedFailure(static_cast<Exit>(figures[2]),
                        fmt::format("no scaling table: the run with {} ranks failed", ranks));
  }
  return {figures[0], figures[1]};
}

}  // namespace

void scaleOnLaunchedRanks(const Options& options, Communicator& world) {
  const int most = std::ranges::max(options.scaling);
  if (most > world.size()) {
    throw SharedFailure(
        Exit::kUsage,
        fmt::format("--scaling {} is for {} ranks, and the launcher has started {}; start {}, or "
                    "leave out the rows that need more",
                    fmt::join(options.scaling, ","), most, world.size(), most));
  }
  const std::vector<std::string> hosts = hostsOfRanks(world);
  const size_t distinct = std::set(hosts.begin(), hosts.end()).size();
  printScalingTable(options, {hosts,
                              fmt::format("{} ranks of a launcher on {} host{}", world.size(),
                                          distinct, distinct == 1 ? "" : "s"),
                              "", world.rank() == 0, [&](int ranks, bool independent) {
                                return measure(options, world, ranks, independent);
                              }});
  world.finalize();
}

}  // namespace weft::train
