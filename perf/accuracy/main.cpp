// SPDX-License-Identifier: Apache-2.0
// weft-accuracy: how well weft predicts its own collectives on this machine, and what its choices
// cost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "perf/accuracy/options.h"
#include "perf/accuracy/report.h"
#include "perf/accuracy/spread.h"
#include "perf/common/exit_code.h"
#include "perf/common/local_ranks.h"
#include "perf/common/machine.h"
#include "perf/common/program.h"
#include "perf/common/report_file.h"
#include "tune/calibrate.h"
#include "tune/machine_file.h"

namespace weft::accuracy {
namespace {

using Clock = std::chrono::steady_clock;

// What a rank is told by: where rank 0 is to leave what it has measured, and how long that may
// take.
constexpr const char* kFile = "ACCURACY_FILE";
constexpr const char* kSeconds = "ACCURACY_SECONDS";

int tell(const Status& status, int exitCode) {
  fmt::print(stderr, "weft-accuracy: {}\n", status.text());
  return exitCode;
}

// A folder that goes with the run.
class Scratch {
 public:
  Scratch() {
    std::string path = (std::filesystem::temp_directory_path() / "weft-accuracy.XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr)
      throw std::runtime_error("no folder could be made: " + path);
    path_ = path;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

int serveAsRank(Options options, const char* file) {
  options.task.seconds = std::strtod(std::getenv(kSeconds), nullptr);
  const World world = measureAsRank(options.task);
  if (!world.points.empty()) std::ofstream(file) << jsonOf(world).dump();
  return tools::kExitHealthy;
}

// Rounds until they agree, as those of a few communicators one after the other; its ranks find them
// in the file.
void calibrate(const std::string& file) {
  constexpr std::uint32_t kMostRounds = 8;
  tune::Calibrator calibrator;
  tune::Calibration calibration;
  while (calibration.provisional() && calibration.rounds < kMostRounds)
    calibration = tune::with(calibration, calibrator.round(), std::time(nullptr));
  tune::saveCalibration(file, tune::machineKey(), calibration);
}

Status nothingMeasured(int ranks) {
  return Status::error(base::Code::SystemError, "nothing was measured with ", ranks,
                       " ranks: the machine is too busy, its cores were moved at each try; fix: "
                       "raise --seconds, or try again when it is idle");
}

// Jobs one after the other; each has its part of the time that is left, and a calibration of its
// own unless the user names one.
int measureAll(const Options& options, char** argv, std::vector<World>* worlds) {
  const Scratch scratch;
  const bool calibrates = std::getenv("WEFT_TUNE_FILE") == nullptr;
  const auto end = Clock::now() + std::chrono::duration<double>(options.task.seconds);
  for (std::size_t i = 0; i < options.ranks.size(); ++i) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    const double part = std::max(left, 0.0) / static_cast<double>(options.ranks.size() - i);
    const std::string file = scratch.file(fmt::format("{}.json", i));
    std::vector<tools::EnvVar> told{{kFile, file}, {kSeconds, fmt::format("{}", part)}};
    if (std::getenv("WEFT_ALGO") == nullptr)
      told.push_back({"WEFT_ALGO", options.task.trials ? "auto" : "model"});
    if (calibrates) {
      told.push_back({"WEFT_TUNE_FILE", scratch.file(fmt::format("{}.machine", i))});
      calibrate(told.back().value);
    }
    const int exitCode = tools::runLocalRanks(options.ranks[i], argv, told);
    if (exitCode != tools::kExitHealthy) return exitCode;
    std::ifstream in(file);
    if (!in) return tell(nothingMeasured(options.ranks[i]), tools::kExitInternal);
    const auto json = nlohmann::ordered_json::parse(in, nullptr, false);
    if (const Status read = readWorld(json, &worlds->emplace_back()); !read.ok())
      return tell(read, tools::kExitInternal);
  }
  return tools::kExitHealthy;
}

// As anybody may say it again: of what lies somewhere on this machine the name alone.
std::string commandOf(int argc, char** argv) {
  std::string command = std::filesystem::path(argv[0]).filename().string();
  for (const std::filesystem::path argument :
       std::span(argv, static_cast<std::size_t>(argc)).subspan(1))
    command += " " + (argument.is_absolute() ? argument.filename() : argument).string();
  return command;
}

Head headOf(int argc, char** argv) {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return {commandOf(argc, argv), tools::machineText(), tools::processorKind(),
          fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday)};
}

// Of all files, whose commands and dates stand before this one's.
Status readAll(const std::vector<std::string>& files, Head* head, std::vector<World>* worlds) {
  std::string commands;
  for (const std::string& file : files) {
    Head of;
    WEFT_TRY(readReport(file, &of, worlds));
    commands += of.command + "`, `";
    *head = {head->command, of.machine, of.kind, of.date};
  }
  head->command = commands + head->command;
  return {};
}

std::optional<tools::ReportFile> fileFor(const std::string& path) {
  return path.empty() ? std::nullopt : std::optional<tools::ReportFile>(path);
}

// Gives intervals the spread of what was measured elsewhere.
Status widenBy(const std::vector<std::string>& files, std::vector<Verdict>* verdicts) {
  if (files.empty()) return {};
  Head head;
  std::vector<World> worlds;
  std::vector<Verdict> elsewhere;
  WEFT_TRY(readAll(files, &head, &worlds));
  WEFT_TRY(judgeAll(worlds, &elsewhere));
  widen(Spread(elsewhere), verdicts);
  return {};
}

int run(const Options& options, int argc, char** argv) {
  Head head = headOf(argc, argv);
  const std::optional<tools::ReportFile> json = fileFor(options.json);
  std::vector<World> worlds;
  if (!options.replay.empty()) {
    if (const Status read = readAll(options.replay, &head, &worlds); !read.ok())
      return tell(read, tools::kExitMismatch);
  } else if (const int exitCode = measureAll(options, argv, &worlds); exitCode != 0) {
    return exitCode;
  }
  std::vector<Verdict> verdicts;
  if (const Status judged = judgeAll(worlds, &verdicts); !judged.ok())
    return tell(judged, tools::kExitInternal);
  if (const Status widened = widenBy(options.elsewhere, &verdicts); !widened.ok())
    return tell(widened, tools::kExitMismatch);
  const std::string tables = tablesOf(head, worlds, verdicts, options.worst);
  fmt::print(tools::besides({options.json}), "{}", tables);
  if (json) json->write(jsonOf(head, worlds, verdicts));
  if (!options.table.empty()) {
    const auto path = std::filesystem::path(options.table) / (head.kind + ".md");
    tools::ReportFile(path.string()).write("# Predicted and measured\n\n" + tables);
  }
  return tools::kExitHealthy;
}

int main(int argc, char** argv) {
  const std::variant<Options, int> parsed = parseOptions(argc, argv);
  if (const int* exitCode = std::get_if<int>(&parsed)) return *exitCode;
  const Options& options = std::get<Options>(parsed);
  const char* const file = std::getenv(kFile);
  return file != nullptr ? serveAsRank(options, file) : run(options, argc, argv);
}

}  // namespace
}  // namespace weft::accuracy

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-accuracy",
                                 [&]() { return weft::accuracy::main(argc, argv); });
}
