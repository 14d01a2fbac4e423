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
#include <fstream>
#include <iostream>

#include "fleet.h"
#include "report.h"

namespace weft::peers {
namespace {

struct Settings {
  std::vector<int> ranks = {2};
  int rounds = 4;
  std::vector<std::string> sizes = {"8",    "64", "512", "1K",  "4K",  "16K", "64K",
                                    "256K", "1M", "4M",  "16M", "64M", "256M"};
  std::vector<std::string> collectives = {"all_reduce", "all_gather", "reduce_scatter"};
  std::vector<std::string> modes = {"steady", "fresh"};
  std::vector<std::string> only;      // prefixes of contenders' names
  std::vector<std::string> variants;  // weftVariant
  std::uint32_t steadyRepeats = 15;
  std::uint32_t freshRepeats = 500;
  std::uint32_t budgetMs = 400;
  bool quick = false;
  std::string table;
  std::string json;
};

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

std::vector<Job> jobsOf(const Settings& settings) {
  std::vector<Job> jobs;
  for (const std::string& collective : settings.collectives) {
    for (const std::string& size : settings.sizes) {
      for (const std::string& mode : settings.modes) {
        Job job;
        job.collective = parseCollective(collective);
        job.bytes = parseSize(size);
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

// One visit of all contenders; the order rotates, so that nobody always follows the same one. False
// if one failed.
bool measurePoint(Fleet& fleet, const Job& job, int ranks, int round,
                  std::vector<Measurement>& measurements) {
  bool isComplete = true;
  for (std::size_t i = 0; i < fleet.size() && !stopping.load(); ++i) {
    const std::size_t number = (i + static_cast<std::size_t>(round)) % fleet.size();
    const std::optional<Timing> timing = fleet.run(number, job);
    isComplete = isComplete && timing.has_value();
    if (!timing) continue;
    measurements.push_back(
        {ranks, round, job.collective, job.mode, job.bytes, fleet.name(number), *timing});
  }
  return isComplete;
}

// False if nothing could be started or a contender failed on the way.
bool measureRanks(const Settings& settings, int ranks, std::vector<Measurement>& measurements) {
  const ScratchFolder folder;
  Fleet fleet(ranks);
  for (const Contender& contender : contenders(ranks, folder.path())) {
    if (isWanted(settings, contender.name)) fleet.start(contender);
  }
  for (const std::string& variant : settings.variants) fleet.start(weftVariant(variant));
  const std::vector<Job> jobs = jobsOf(settings);
  bool isComplete = fleet.size() > 0;
  for (int round = 0; round < settings.rounds; ++round) {
    for (std::size_t i = 0; i < jobs.size() && !stopping.load(); ++i) {
      if (isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r{} ranks, round {} of {}, point {} of {}   ", ranks, round + 1,
                   settings.rounds, i + 1, jobs.size());
      }
      isComplete = measurePoint(fleet, jobs[i], ranks, round, measurements) && isComplete;
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
  app.add_option("--rounds", settings.rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--sizes", settings.sizes, "bytes, K or M")->delimiter(',')->capture_default_str();
  app.add_option("--collectives", settings.collectives, "also broadcast, alltoall")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--modes", settings.modes, "steady: calls back to back; fresh: rewritten data")
      ->delimiter(',')
      ->check(CLI::IsMember({"steady", "fresh"}))
      ->capture_default_str();
  app.add_option("--only", settings.only, "contenders by name or prefix (weft,openmpi,floor)")
      ->delimiter(',');
  app.add_option("--variant", settings.variants,
                 "weft once more with knobs: label:WEFT_SEGMENT_KB=64,WEFT_CMA=off; repeatable");
  app.add_flag("--quick", settings.quick, "short visits, and 2 rounds unless --rounds says else");
  app.add_option("--table", settings.table, "write the tables to this file too (Markdown)");
  app.add_option("--json", settings.json, "write all measurements to this file");
}

void shorten(Settings& settings) {
  settings.steadyRepeats = 5;
  settings.freshRepeats = 100;
  settings.budgetMs = 150;
}

template <typename Write>
void writeFile(const std::string& path, Write write) {
  if (path.empty()) return;
  std::ofstream file(path);
  write(file);
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app{"The same collectives on weft and its peers, interleaved, in one run"};
  addOptions(app, settings);
  CLI11_PARSE(app, argc, argv);
  if (settings.quick) shorten(settings);
  if (settings.quick && app.count("--rounds") == 0) settings.rounds = 2;
  static_cast<void>(jobsOf(settings));  // a mistyped name is an error before anything starts

  stopOnSignals();
  std::vector<Measurement> measurements;
  bool isComplete = true;
  for (const int ranks : settings.ranks) {
    isComplete = measureRanks(settings, ranks, measurements) && isComplete;
  }
  writeTables(std::cout, measurements);
  writeFile(settings.table, [&](std::ostream& out) { writeTables(out, measurements); });
  writeFile(settings.json, [&](std::ostream& out) { writeJson(out, measurements); });
  return isComplete ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  try {
    return weft::peers::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-peers: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
