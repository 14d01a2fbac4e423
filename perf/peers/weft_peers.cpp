// SPDX-License-Identifier: Apache-2.0
// weft-peers: the same collectives on weft and on the libraries of this machine, in one run. All
// contenders stay alive, asleep; each round visits every point, and at each point every contender
// in turn, so that what disturbs the machine disturbs all of them. See docs/performance.md.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "chart.h"
#include "fleet.h"
#include "overview.h"
#include "perf/common/command_line.h"
#include "perf/common/machine.h"
#include "perf/common/report_file.h"
#include "placement.h"
#include "report.h"

namespace weft::peers {
namespace {

struct Settings {
  std::vector<int> ranks = {2};
  int threads = 1;
  int rounds = 4;
  std::vector<std::string> sizes = {"8",    "64", "512", "1K",  "4K",  "16K", "64K",
                                    "256K", "1M", "4M",  "16M", "64M", "256M"};
  std::vector<std::string> collectives = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                          "reduce",     "gather",     "scatter",        "alltoall"};
  std::vector<std::string> modes = {"steady", "fresh"};
  std::vector<std::string> only;      // prefixes of contenders' names
  std::vector<std::string> variants;  // weftVariant
  std::uint32_t steadyRepeats = 15;
  std::uint32_t freshRepeats = 500;
  std::uint32_t budgetMs = 400;
  Hosts hosts;
  bool quick = false;
  bool full = false;
  std::string table;
  std::string json;
  std::string chart;
};

// --full leaves out larger sizes: ranks x bytes of all inputs, and as much again of outputs.
constexpr std::uint64_t kFullBytes = 512 << 20;
// A library that is so many times slower than the fastest one at a point is not asked there again.
constexpr double kHopeless = 4;
constexpr int kPasses = 4;  // of a visit, while cores move

// Ctrl-C or SIGTERM: stop after the point in progress and report what there is.
std::atomic<bool> stopping{false};

void stopOnSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stopping.store(true); };
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

// A folder of our own that goes when we go.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-peers-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make the folder " + name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<Job> jobsOf(const Settings& settings, int ranks) {
  const std::uint64_t limit =
      settings.full ? kFullBytes / static_cast<std::uint64_t>(ranks) : ~std::uint64_t{0};
  std::vector<Job> jobs;
  for (const std::string& collective : settings.collectives) {
    for (const std::string& size : settings.sizes) {
      for (const std::string& mode : settings.modes) {
        Job job;
        job.collective = parseCollective(collective);
        job.bytes = parseSize(size);
        if (job.bytes > limit) continue;
        job.mode = mode == "fresh" ? Mode::Fresh : Mode::Steady;
        job.repeats = mode == "fresh" ? settings.freshRepeats : settings.steadyRepeats;
        job.budgetMs = settings.budgetMs;
        jobs.push_back(job);
      }
    }
  }
  return jobs;
}

bool isWanted(const Settings& settings, const std::string& contender) {
  return settings.only.empty() ||
         std::any_of(settings.only.begin(), settings.only.end(), [&](const std::string& prefix) {
           return contender.compare(0, prefix.size(), prefix) == 0;
         });
}

// One point of the run and the contenders that are still asked there.
struct Stop {
  Job job;
  std::set<std::size_t> hopeless;
};

// After a visit: leaves out the libraries that have no chance of being the fastest there.
void dropHopeless(Stop& stop, const Fleet& fleet, const std::map<std::size_t, double>& times) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [number, us] : times) {
    if (isPeer(fleet.name(number))) best = std::min(best, us);
  }
  for (const auto& [number, us] : times) {
    if (isPeer(fleet.name(number)) && us > kHopeless * best) stop.hopeless.insert(number);
  }
}

// How often runs were made again because the machine's cores had moved, and how many are left that met
// them elsewhere than the other runs of their visit.
struct Moves {
  std::size_t again = 0;
  std::size_t left = 0;
};

// One visit of all contenders. The order rotates, so that nobody always follows the same one; those that
// met the cores elsewhere than the others did are asked again. No timing: that one failed.
std::map<std::size_t, std::optional<Timing>> runAll(const Stop& stop, Fleet& fleet, int round,
                                                    Moves& moves) {
  std::map<std::size_t, std::optional<Timing>> timings;
  std::map<std::size_t, Placement> placements;
  std::set<std::size_t> asked;
  for (std::size_t number = 0; number < fleet.size(); ++number)
    if (stop.hopeless.count(number) == 0) asked.insert(number);
  for (int pass = 0; pass < kPasses && !asked.empty() && !stopping.load(); ++pass) {
    if (pass > 0) moves.again += asked.size();
    for (std::size_t i = 0; i < fleet.size() && !stopping.load(); ++i) {
      const std::size_t number = (i + static_cast<std::size_t>(round)) % fleet.size();
      if (asked.count(number) == 0) continue;
      const double before = fleet.roundTripNs();
      timings[number] = fleet.run(number, stop.job);
      placements[number] = {before, fleet.roundTripNs()};
      if (!timings[number]) placements.erase(number);
    }
    asked = elsewhere(placements);
  }
  moves.left += asked.size();
  return timings;
}

// False if a contender failed.
bool visit(Stop& stop, Fleet& fleet, int ranks, int round, std::vector<Measurement>& measurements,
           Moves& moves) {
  const Job& job = stop.job;
  std::map<std::size_t, double> times;
  bool isComplete = true;
  for (const auto& [number, timing] : runAll(stop, fleet, round, moves)) {
    isComplete = isComplete && timing.has_value();
    if (!timing) continue;
    times[number] = timing->median;
    measurements.push_back(
        {ranks, round, job.collective, job.mode, job.bytes, fleet.name(number), *timing});
  }
  dropHopeless(stop, fleet, times);
  return isComplete;
}

// False if a contender did not start.
bool startAll(const Settings& settings, const std::vector<Contender>& wanted, Fleet& fleet) {
  bool isComplete = true;
  for (const Contender& contender : wanted) {
    if (isWanted(settings, contender.name)) isComplete = fleet.start(contender) && isComplete;
  }
  for (const std::string& variant : settings.variants) {
    isComplete = fleet.start(weftVariant(variant)) && isComplete;
  }
  return isComplete;
}

// False if a contender did not start or failed on the way; the others are measured all the same.
bool measureRanks(const Settings& settings, int ranks, std::vector<Measurement>& measurements,
                  Moves& moves) {
  const ScratchFolder folder;
  Fleet fleet(ranks, settings.threads, settings.hosts);
  bool isComplete = startAll(settings, contenders(ranks, folder.path(), settings.hosts), fleet);
  std::vector<Stop> stops;
  for (const Job& job : jobsOf(settings, ranks)) stops.push_back({job, {}});
  for (int round = 0; round < settings.rounds; ++round) {
    for (std::size_t i = 0; i < stops.size() && !stopping.load(); ++i) {
      if (isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r{} ranks, round {} of {}, point {} of {}   ", ranks, round + 1,
                   settings.rounds, i + 1, stops.size());
      }
      isComplete = visit(stops[i], fleet, ranks, round, measurements, moves) && isComplete;
    }
  }
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\n");
  return isComplete && !stopping.load();
}

void addOptions(CLI::App& app, Settings& settings) {
  app.add_option("--ranks", settings.ranks, "ranks, one or more values")
      ->delimiter(',')
      ->check(CLI::Range(1, kMaxRanks))
      ->capture_default_str();
  app.add_option(
         "--threads", settings.threads,
         "cores of each rank, on which weft (WEFT_THREADS) and the floor have a thread each")
      ->check(CLI::Range(1, kMostCores))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds)->check(tools::positive())->capture_default_str();
  app.add_option("--sizes", settings.sizes, "bytes, K or M")->delimiter(',')->capture_default_str();
  app.add_option("--collectives", settings.collectives)->delimiter(',')->capture_default_str();
  app.add_option("--modes", settings.modes, "steady: calls back to back; fresh: rewritten data")
      ->delimiter(',')
      ->check(CLI::IsMember({"steady", "fresh"}))
      ->capture_default_str();
  app.add_option("--only", settings.only, "contenders by name or prefix (weft:own,openmpi,floor)")
      ->delimiter(',');
  app.add_option("--variant", settings.variants,
                 "weft once more: label:WEFT_SEGMENT_KB=64,WEFT_CMA=off; the words own and threads "
                 "may follow; repeatable");
  app.add_option("--hosts", settings.hosts.addresses,
                 "spread the ranks over these addresses (tests/rigs/hosts.sh makes some)")
      ->delimiter(',');
  app.add_option("--shell", settings.hosts.shell, "an rsh: SHELL ADDRESS COMMAND...; with --hosts");
  app.add_flag("--quick", settings.quick, "short visits, and 2 rounds unless --rounds says else");
  app.add_flag(
      "--full", settings.full,
      "everything that docs/performance.md shows: 2, 4 and 8 ranks, 3 rounds of short visits, "
      "up to 512 MiB of inputs; about 45 minutes on 2 cores");
  app.add_option("--table", settings.table,
                 "write the tables to this file (Markdown), or into this folder, by the "
                 "kind of processor");
  app.add_option("--json", settings.json, "write all measurements to this file");
  app.add_option("--chart", settings.chart,
                 "write the ratios to the floor to this file (SVG), or folder");
}

void shorten(Settings& settings) {
  settings.steadyRepeats = 5;
  settings.freshRepeats = 100;
  settings.budgetMs = 150;
}

// What --quick and --full mean where no option says else.
void applyPresets(const CLI::App& app, Settings& settings) {
  if (settings.quick || settings.full) shorten(settings);
  if (app.count("--rounds") == 0 && settings.full) settings.rounds = 3;
  if (app.count("--rounds") == 0 && settings.quick) settings.rounds = 2;
  if (app.count("--ranks") == 0 && settings.full) settings.ranks = {2, 4, 8};
}

// A mistyped name is an error before anything starts.
void checkNames(const Settings& settings) {
  if (settings.hosts.given() == settings.hosts.shell.empty())
    throw std::invalid_argument("--hosts and --shell belong together");
  static_cast<void>(jobsOf(settings, 1));
  for (const std::string& variant : settings.variants) static_cast<void>(weftVariant(variant));
  const std::vector<Contender> all = contenders(1, {});
  for (const std::string& prefix : settings.only) {
    const bool isKnown = std::any_of(all.begin(), all.end(), [&](const Contender& contender) {
      return contender.name.rfind(prefix, 0) == 0;
    });
    if (!isKnown) throw std::invalid_argument("--only: no contender is called " + prefix);
  }
}

template <typename Write>
void writeFile(const std::string& path, Write write) {
  if (path.empty()) return;
  std::ostringstream content;
  write(content);
  tools::ReportFile(path).write(content.str());
}

void writeDocument(std::ostream& out, int argc, char** argv,
                   const std::vector<Measurement>& measurements, const Moves& moves) {
  out << "# Weft and its peers, measured\n\nWritten by `./dev peers";
  for (int i = 1; i < argc; ++i) out << ' ' << argv[i];
  out << "` on " << tools::machineText()
      << ". Microseconds, medians over the rounds; ratios are taken within each round, and shown "
         "as "
         "their median and range. `any`: weft with malloc'ed buffers; `own`: with weftMemAlloc's; "
         "`threads`: ranks as threads of one process. docs/performance.md says how it is "
         "measured. "
      << fmt::format(
             "{} of {} runs were made again, as this machine's cores had moved; {} are left "
             "that met them elsewhere than others of their point and round.\n",
             moves.again, measurements.size() + moves.again, moves.left);
  writeOverview(out, measurements);
  writeTables(out, measurements);
}

// In a folder, a file for each kind of processor.
std::string fileOf(const std::string& path, const char* suffix) {
  const bool isFolder = !path.empty() && std::filesystem::is_directory(path);
  return isFolder ? (std::filesystem::path(path) / (tools::processorKind() + suffix)).string()
                  : path;
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app{"The same collectives on weft and its peers, interleaved, in one run"};
  addOptions(app, settings);
  tools::addVersion(app, "weft-peers");
  if (const auto code = tools::endByWords(app, argc, argv)) return *code;
  settings.table = fileOf(settings.table, ".md");
  settings.chart = fileOf(settings.chart, ".svg");
  for (const std::string& path : {settings.table, settings.json, settings.chart})
    if (!path.empty()) tools::ReportFile tried(path);
  applyPresets(app, settings);
  checkNames(settings);

  stopOnSignals();
  std::vector<Measurement> measurements;
  Moves moves;
  bool isComplete = true;
  for (const int ranks : settings.ranks) {
    isComplete = measureRanks(settings, ranks, measurements, moves) && isComplete;
  }
  const bool aside = tools::besides({settings.table, settings.json, settings.chart}) == stderr;
  writeTables(aside ? std::cerr : std::cout, measurements);
  writeOverview(aside ? std::cerr : std::cout, measurements);
  writeFile(settings.table,
            [&](std::ostream& out) { writeDocument(out, argc, argv, measurements, moves); });
  writeFile(settings.json, [&](std::ostream& out) { writeJson(out, measurements); });
  writeFile(settings.chart, [&](std::ostream& out) { writeChart(out, measurements); });
  if (!isComplete) fmt::print(stderr, "weft-peers: not everything was measured; see above\n");
  return isComplete ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-peers", [&]() { return weft::peers::run(argc, argv); });
}
