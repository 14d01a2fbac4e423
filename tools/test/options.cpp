// SPDX-License-Identifier: Apache-2.0
#include "tools/test/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/weft-perf/numbers.h"
#include "perf/weft-perf/parsed.h"

namespace weft::test {
namespace {

using perf::parsed;

constexpr const char* kFooter = R"(
Sizes take kb, MB, GB (of 1024). Several operations may be named; each has its own table.

Examples
  weft-test allr -r 4 -b 8 -e 256M -f 4 -n 20 -w 5 -d fp32 --check random
  weft-test allg redsct -r 4 -b 1kb -e 1MB -f 8 --stats avg p50 p99 --report-to-json-file report.json
  mpirun -n 4 weft-test allr -r 4        srun -n 4 weft-test allr -r 4

Without a launcher the ranks are local processes; with one, -r must be as many as it has started.
Columns are nccom-test's. Times are of single calls, each as its slowest rank saw it. GB/s are, as
nccom-test's, 2^30 bytes per second; those of weft-perf are 10^9.

Exit codes: 0 passed; 1 wrong data without one culprit; 69 all wrong data has one rank or one link in
common, which is named; 64 usage; 65 ranks disagree; 70 a bug; 71 a process could not be started;
73 the report cannot be written, found before the run; 75 a peer or the network was lost; 77 a rank
does not know the job's secret; 78 this machine or its settings.
Environment: WEFT_*.)";

// The flags as typed, where their type is not that of TestOptions.
struct Raw {
  std::vector<std::string> operations;
  std::string min = "32M", max = "32M", step, factor, type = "uint8", check;
  std::string hosts, hostsFile, groups, pairs, stats = "avg";
  int spread = 0, rounds = 1, warmRounds = 0;
  bool debug = false;
};

std::string operationNames() {
  std::string names;
  for (const Operation& operation : allOperations()) {
    const bool same = std::string(operation.name) == operation.alias;
    names += same ? fmt::format(" {}", operation.name)
                  : fmt::format(" {}|{}", operation.name, operation.alias);
  }
  return names;
}

void addWork(CLI::App& app, Raw& raw, TestOptions& options) {
  perf::Options& measure = options.measure;
  measure.warmup = 5;
  app.add_option("operation", raw.operations, "one or more of" + operationNames())->expected(1, 99);
  app.add_option("-r,--nworkers", options.ranks, "ranks")->required()->check(CLI::Range(1, 4096));
  app.add_option("-b,--minbytes", raw.min, "smallest size")->capture_default_str();
  app.add_option("-e,--maxbytes", raw.max, "largest size")->capture_default_str();
  app.add_option("-i,--stepbytes", raw.step, "bytes between sizes (default: a tenth of the way)");
  app.add_option("-f,--stepfactor", raw.factor, "factor between sizes, instead of -i");
  app.add_option("-n,--iters", measure.iterations, "timed calls")
      ->check(tools::positive())
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", measure.warmup,
                 fmt::format("calls before them; without it, then up to {} in {} s, in which calls "
                             "find their form",
                             perf::Options::kMostSettling, perf::Options::kSettlingSeconds))
      ->each([&measure](const std::string&) { measure.settles = false; })
      ->check(tools::natural())
      ->capture_default_str();
  app.add_option("-I,--neff_iters", raw.rounds, "times so many timed calls")
      ->check(tools::positive());
  app.add_option("-W,--neff_warmup_iters", raw.warmRounds, "rounds of -w and -n calls before them")
      ->check(tools::natural());
  app.add_option("-d,--datatype", raw.type, "element type")->capture_default_str();
  app.add_option("-c,--check", raw.check, "check every element: random (default) or all_ones");
  app.add_option("--seed", measure.seed, "of the data that is checked")
      ->check(tools::natural(0x1p64))
      ->capture_default_str();
}

void addRanks(CLI::App& app, Raw& raw, TestOptions& options) {
  app.add_option("-N,--nnodes", options.nodes, "hosts that the launcher must have used")
      ->check(CLI::Range(1, 4096));
  app.add_option("-s,--hosts", raw.hosts, "these hosts (a launcher starts the ranks there)");
  app.add_option("--hosts-file", raw.hostsFile, "the same, one a line");
  app.add_flag("-S,--slurm-mode", options.slurm, "make sure that srun has started the ranks");
  app.add_option("--custom-replica-group,--custom-replica-groups", raw.groups,
                 R"(JSON, or a file of it: {"replica_groups": [[0, 1], [2, 3]]})");
  app.add_option("--data-parallel-dimension", raw.spread,
                 "groups of so many ranks, as far apart as can be");
  app.add_option("--custom-src-target-pairs", raw.pairs,
                 R"(of permute, likewise: {"src_target_pairs": [[0, 1], [1, 0]]})");
}

void addReport(CLI::App& app, Raw& raw, TestOptions& options) {
  app.add_option("-t,--stats", raw.stats, "columns of time: avg, or percentiles as p50 and p99.9");
  app.add_option("--report-to-json-file", options.measure.json,
                 "write the results to this file; - is standard output");
  app.add_flag("--show-algorithm", options.showAlgorithm, "a column with the algorithm");
  app.add_flag("--show-input-output-size", options.showSizes, "columns with a rank's sizes");
  app.add_flag(
      "--non-interactive", [&](std::int64_t) { options.interactive = false; }, "no progress line");
  app.add_flag("--debug", raw.debug, "WEFT_DEBUG=INFO, and no progress line");
}

// Flags of nccom-test without a meaning here say so instead of being ignored.
void addRejected(CLI::App& app) {
  const auto reject = [&app](const char* names, const std::string& why) {
    const auto fail = [=](const std::vector<std::string>&) -> bool {
      throw CLI::ValidationError(names, "has no meaning here: " + why);
    };
    app.add_option(names, CLI::callback_t(fail))->expected(0, 1)->group("");
  };
  for (const char* name : {"--unique-buff", "--shared-output-buff", "--coalesced-cc-size-ratio",
                           "--sb2sb", "--input-shape", "--output-shape", "--cc-dim"}) {
    reject(name, "it is about the memory of a Neuron device");
  }
  for (const char* name : {"-u,--slurm-vcpus-per-node", "--slurm-setup-script", "--slurm-job-id",
                           "--slurm-use-head-node-neuron-bench"}) {
    reject(name, "weft-test starts no Slurm job; run srun -n RANKS weft-test ... in one");
  }
  for (const char* name : {"--data-collector-port", "--data-collector-host", "--mpi-log-dir"}) {
    reject(name, "rank 0 collects through the communicator, and the launcher keeps the output");
  }
  reject("--alltoallv-metadata",
         "alltoallv sends uneven blocks of its own, as long as 1, 3, 5, ...");
  reject("--vcpu-pin-mode", "ranks are pinned by the launcher, as in mpirun --bind-to core");
}

// "4kb", "1MB", "8": nccom-test's suffixes are weft-perf's with a b.
std::size_t parseBytes(const std::string& text) {
  const bool unit = text.size() > 1 && std::tolower(static_cast<unsigned char>(text.back())) == 'b';
  try {
    return perf::parseSize(unit ? text.substr(0, text.size() - 1) : text);
  } catch (const std::invalid_argument&) {
    throw std::invalid_argument("'" + text +
                                "' is not a size; use bytes with kb, MB or GB, as in 64kb");
  }
}

void convertSizes(const Raw& raw, perf::Options& measure) {
  measure.minBytes = parsed("-b", [&]() { return parseBytes(raw.min); });
  measure.maxBytes = parsed("-e", [&]() { return parseBytes(raw.max); });
  if (measure.minBytes > measure.maxBytes) {
    throw CLI::ValidationError(
        "-b", fmt::format("{} is larger than -e {}; exchange them", raw.min, raw.max));
  }
  const std::size_t tenth = (measure.maxBytes - measure.minBytes) / 10;
  measure.stepBytes = std::max<std::size_t>(tenth, 1);
  if (!raw.step.empty()) measure.stepBytes = parsed("-i", [&]() { return parseBytes(raw.step); });
  if (measure.stepBytes == 0) throw CLI::ValidationError("-i", "0 never reaches -e");
  if (raw.factor.empty()) return;
  measure.factor = parsed("-f", [&]() { return parseBytes(raw.factor); });
  if (measure.factor < 2) throw CLI::ValidationError("-f", "is 2 or more");
}

void convertCheck(const std::string& check, perf::Options& measure) {
  measure.checks = check.empty() ? 0 : 1;
  measure.checkOnes = check == "all_ones";
  if (!check.empty() && !measure.checkOnes && check != "random") {
    throw CLI::ValidationError("-c", "'" + check + "' is neither random nor all_ones");
  }
}

void convertOperations(const std::vector<std::string>& names, TestOptions& options) {
  for (const std::string& name : names) {
    options.operations.push_back(findOperation(name));
    if (options.operations.back() != nullptr) continue;
    throw CLI::ValidationError("operation",
                               "unknown '" + name + "'; use one of" + operationNames());
  }
  if (names.empty()) throw CLI::ValidationError("operation", "name one of" + operationNames());
}

// "avg", or "p" and a number up to 100, such as p99.9.
bool isStatistic(const std::string& name) {
  double percent = -1;
  const char* const end = name.data() + name.size();
  if (!name.starts_with("p") || name.find_first_not_of("0123456789.", 1) != std::string::npos)
    return name == "avg";
  return std::from_chars(name.data() + 1, end, percent).ptr == end && percent >= 0 &&
         percent <= 100;
}

void convertStats(const std::string& list, std::vector<std::string>& stats) {
  stats = CLI::detail::split(list, ',');
  for (const std::string& name : stats) {
    if (isStatistic(name)) continue;
    throw CLI::ValidationError("-t", "'" + name + "' is neither avg nor a percentile, as p50");
  }
}

void readHosts(const std::string& path, std::vector<std::string>& hosts) {
  if (path.empty()) return;
  std::ifstream file(path);
  if (!file || !std::filesystem::is_regular_file(path))
    throw CLI::ValidationError("--hosts-file", "cannot read '" + path + "'");
  for (std::string host; file >> host;) hosts.push_back(host);
}

void convertGroups(const Raw& raw, TestOptions& options) {
  if (!raw.groups.empty() && raw.spread > 0) {
    throw CLI::ValidationError("--data-parallel-dimension", "and --custom-replica-group: use one");
  }
  if (!raw.groups.empty()) {
    options.groups =
        parsed("--custom-replica-group", [&]() { return parseGroups(raw.groups, options.ranks); });
  }
  if (raw.spread > 0) {
    options.groups = parsed("--data-parallel-dimension",
                            [&]() { return spreadGroups(raw.spread, options.ranks); });
  }
  if (raw.pairs.empty()) return;
  const bool grouped = !options.groups.empty();
  const std::size_t ranks = grouped ? options.groups.front().size() : 0;
  options.pairs = parsed("--custom-src-target-pairs", [&]() {
    return parsePairs(raw.pairs, grouped ? static_cast<int>(ranks) : options.ranks);
  });
}

void convert(const Raw& raw, TestOptions& options) {
  perf::Options& measure = options.measure;
  convertOperations(raw.operations, options);
  convertSizes(raw, measure);
  convertCheck(raw.check, measure);
  convertStats(raw.stats, options.stats);
  if (!raw.hosts.empty()) options.hosts = CLI::detail::split(raw.hosts, ',');
  readHosts(raw.hostsFile, options.hosts);
  convertGroups(raw, options);
  measure.types = {parsed("-d", [&]() { return parseType(raw.type); })};
  measure.ops = perf::parseOps("sum");
  measure.warmup += (measure.warmup + measure.iterations) * raw.warmRounds;
  measure.iterations *= raw.rounds;
  measure.program = "weft-test";
  measure.exactCounts = measure.onlySingle = true;
  measure.inPlace = false;
  measure.explain = options.showAlgorithm;
  if (raw.debug) ::setenv("WEFT_DEBUG", "INFO", 0);
  if (raw.debug) options.interactive = false;
}

// The words, last one first, as CLI11 wants them. Flags with a list, or with an optional value, end
// before an operation: "--stats p50 p99 allr" and "--check allr" mean what they say.
std::vector<std::string> reversedWords(int argc, char** argv) {
  static const std::vector<std::string> kListFlags = {"-t",      "--stats", "-s",
                                                      "--hosts", "-c",      "--check"};
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    words.emplace_back(argv[i]);
    if (std::ranges::find(kListFlags, words.back()) == kListFlags.end()) continue;
    const bool checks = words.back().ends_with('c') || words.back() == "--check";
    std::string list;
    while (i + 1 < argc && argv[i + 1][0] != '-' && findOperation(argv[i + 1]) == nullptr) {
      if (!list.empty()) list += ',';
      list += argv[++i];
    }
    if (!list.empty() || checks) words.push_back(list.empty() ? "random" : list);
  }
  std::ranges::reverse(words);
  return words;
}

}  // namespace

std::variant<TestOptions, int> parseOptions(int argc, char** argv) {
  CLI::App app("Times and checks weft's collectives, in the manner of nccom-test.", "weft-test");
  app.option_defaults()->take_last();
  TestOptions options;
  Raw raw;
  addWork(app, raw, options);
  addRanks(app, raw, options);
  addReport(app, raw, options);
  addRejected(app);
  tools::addVersion(app, "weft-test");
  app.footer(kFooter);
  try {
    app.parse(reversedWords(argc, argv));
    convert(raw, options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  return options;
}

}  // namespace weft::test
