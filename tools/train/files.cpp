// SPDX-License-Identifier: Apache-2.0
#include "tools/train/files.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "perf/common/report_file.h"
#include "tools/train/checkpoint_folder.h"
#include "tools/train/curve_file.h"
#include "tools/train/failure.h"
#include "tools/train/part_checkpoints.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/reports/event_file.h"
#include "tools/train/weights/initial_weights.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

void checkReports(const Options& options) {
  if (!options.resume.empty())
    static_cast<void>(
        curveBefore(options.csv, std::numeric_limits<int64_t>::max(), curveColumnsOf(options)));
  for (const std::string& path : {options.csv, options.json, options.svg, options.report})
    if (!path.empty()) tools::ReportFile tried(path);
  if (!options.tensorboard.empty()) checkEventFolder(options.tensorboard);
}

void checkExport(const std::string& path) {
  if (path.empty() || tools::ReportFile(path).isReplaced()) return;
  throw Failure(Exit::kUsage, fmt::format("--export {} is no regular file, and the weights are "
                                          "written beside it first; name a file in a folder",
                                          path));
}

void checkSave(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Failure(Exit::kCannotWrite,
                  fmt::format("cannot make the folder --save {}: {}", folder, error.message()));
  }
  tools::ReportFile tried(fs::path(folder) / "checkpoint");
}

// A run that saves where it resumes from begins there when it is started for the first time.
void checkResume(const Options& options) {
  if (options.resume.empty() || hasCheckpoint(options.resume, anyPartOf(options)) ||
      isSameFolder(options.resume, options.save))
    return;
  throw Failure(Exit::kUsage,
                fmt::format("there is no checkpoint in --resume {}; name the folder that an "
                            "earlier run had as --save",
                            options.resume));
}

// Not needed any more once this training has a checkpoint of its own.
void checkStart(const Options& options) {
  const std::string& folder = options.startFrom;
  const bool hasOwn = !options.resume.empty() && hasCheckpoint(options.resume, anyPartOf(options));
  if (folder.empty() || hasOwn || hasCheckpoint(folder, anyPartOf(options))) return;
  throw Failure(Exit::kUsage,
                fmt::format("there is no checkpoint in --start-from {}; name the folder "
                            "that an earlier training had as --save",
                            folder));
}

}  // namespace

void checkFiles(const Options& options) {
  try {
    checkSave(options.save);  // first, as it makes the folder that the others may be in
    checkReports(options);
    checkExport(options.exportTo);
  } catch (const tools::CannotWrite& error) {
    throw Failure(Exit::kCannotWrite, error.what());
  }
  checkResume(options);
  checkStart(options);
  if (!options.initFrom.empty()) static_cast<void>(InitialWeights(options.initFrom, options.shape));
}

std::string filesOfSteps(const Options& options) {
  std::vector<std::string> files;
  if (!options.json.empty()) files.push_back("--json " + options.json);
  if (!options.svg.empty()) files.push_back("--svg " + options.svg);
  if (!options.report.empty()) files.push_back("--report " + options.report);
  return fmt::format("{}", fmt::join(files, ", "));
}

}  // namespace weft::train
