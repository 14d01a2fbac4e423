// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/options.h"

#include <CLI/CLI.hpp>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/weft-perf/numbers.h"
#include "perf/weft-perf/parsed.h"

namespace weft::accuracy {
namespace {

constexpr const char* kFooter = R"(
Examples
  weft-accuracy --ranks 2,4 --seconds 120
  weft-accuracy --ranks 2,3,4,8 --seconds 600 --json build/accuracy.json --table docs/accuracy
  weft-accuracy --replay build/accuracy.json       judges the same measurements by this build's model

It starts jobs of so many ranks on this host, one after the other. Each calibrates as every job does,
and then makes the calls of all points in all forms by turns, round after round, until its part of the
time is over; the points that come first are as different as can be. Each point is predicted by the
simulator from the calibration alone. Columns: the error is |predicted - measured| / measured of what
the library chooses; inside is the share of the measurements that lie between the predictions by single
rounds of the calibration or, with --interval, by nine tenths of the misses elsewhere; regret is the time of the choice over that of the best form (judge.h says
how noise is kept out of it). docs/prediction.md has more.
Exit codes: 0 good, 64 usage, 65 the file to replay is bad, 70 internal, 71 no ranks, 73 an output
cannot be written; those of the ranks.)";

// The flags as typed, where their type is not that of Options.
struct Raw {
  std::vector<std::string> sizes = {"8", "64", "512", "4K", "32K", "256K", "2M", "16M", "64M"};
  std::vector<std::string> collectives = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                          "reduce",     "gather",     "scatter",        "alltoall"};
  std::vector<std::string> buffers = {"any", "own"}, modes = {"steady", "fresh"};
};

void addSweep(CLI::App& app, Raw& raw) {
  const auto list = [&](const char* name, std::vector<std::string>& words, const char* help) {
    return app.add_option(name, words, help)->delimiter(',')->capture_default_str();
  };
  list("--sizes", raw.sizes, "bytes, as nccl-tests counts them");
  list("--collectives", raw.collectives, "nccl-tests' names");
  list("--buffers", raw.buffers, "any: malloc'ed; own: of weftMemAlloc")
      ->check(CLI::IsMember({"any", "own"}));
  list("--modes", raw.modes, "steady: calls back to back; fresh: data in use between them")
      ->check(CLI::IsMember({"steady", "fresh"}));
}

void convert(const Raw& raw, Options& options) {
  using perf::parsed;
  Sweep& sweep = options.task.sweep;
  for (const std::string& name : raw.collectives) {
    sweep.collectives.push_back(
        parsed("--collectives", [&]() { return &perf::parseCollective(name); }));
    if (!sweep.collectives.back()->plans || sweep.collectives.back()->shape == nullptr)
      throw CLI::ValidationError("--collectives", name + " has no forms to choose from");
  }
  for (const std::string& size : raw.sizes)
    sweep.sizes.push_back(parsed("--sizes", [&]() { return perf::parseSize(size); }));
  for (const std::string& buffers : raw.buffers) sweep.own.push_back(buffers == "own");
  for (const std::string& mode : raw.modes) sweep.modes.push_back(parseMode(mode));
}

}  // namespace

std::variant<Options, int> parseOptions(int argc, char** argv) {
  CLI::App app(
      "How well weft predicts its own collectives on this machine, and what its choices cost");
  app.footer(kFooter);
  Options options{{2}, {{}, 60, false}, {}, {}, "", "", 20};
  Raw raw;
  tools::addVersion(app, "weft-accuracy");
  app.add_option("--ranks", options.ranks, "ranks of each job, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  app.add_option("--seconds", options.task.seconds,
                 "for all jobs together; each visits every point "
                 "again and again, and leaves out what does not fit")
      ->check(tools::positive())
      ->capture_default_str();
  addSweep(app, raw);
  app.add_flag("--all", options.task.all, "also measure forms that are never chosen by themselves");
  app.add_flag("--trials", options.task.trials,
               "judge what calls that are not forced find out by themselves, after their first "
               "trial, in place of what the model chooses");
  app.add_option("--replay", options.replay,
                 "judge what --json has written, in one file or several, and measure nothing")
      ->check(CLI::ExistingFile);
  app.add_option(
         "--interval", options.elsewhere,
         "intervals by how far off predictions were in these files of --json, of other machines")
      ->check(CLI::ExistingFile);
  app.add_option("-J,--json", options.json, "write everything to this file; - is standard output");
  app.add_option("--table", options.table,
                 "write the tables into this folder, in a file named after "
                 "the kind of processor")
      ->check(CLI::ExistingDirectory);
  app.add_option("--worst", options.worst, "how many of the costliest choices are listed")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    convert(raw, options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tools::kExitHealthy : tools::kExitUsage;
  }
  return options;
}

}  // namespace weft::accuracy
