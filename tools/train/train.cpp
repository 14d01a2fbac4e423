// SPDX-License-Identifier: Apache-2.0
#include "tools/train/train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>

#include "tools/train/agreement.h"
#include "tools/train/attention_memory.h"
#include "tools/train/checkpoint_folder.h"
#include "tools/train/files.h"
#include "tools/train/make_steps.h"
#include "tools/train/math_libraries.h"
#include "tools/train/models/tensor_memory.h"
#include "tools/train/pace.h"
#include "tools/train/parallel_groups.h"
#include "tools/train/part_checkpoints.h"
#include "tools/train/partition.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/report.h"
#include "tools/train/report_head.h"
#include "tools/train/summarize_run.h"
#include "tools/train/termination.h"
#include "tools/train/trainer.h"
#include "tools/train/training_data.h"

namespace weft::train {
namespace {

// Cores that this process may use, shared evenly among the ranks of its host. The sums inside of an
// operation depend on its threads, so those of reproducible runs do not depend on the ranks.
int computeThreads(const Options& options, const Communicator& world) {
  if (options.threads > 0 || options.reproducible) return std::max(options.threads, 1);
  int localRank = 0, localRanks = 1;
  check(weftCommLocalRank(world, &localRank, &localRanks), world);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(cores / localRanks, 1);
}

// Gives the math libraries as many threads, and says how many.
int takeThreads(const Options& options, const Communicator& world) {
  const int threads = computeThreads(options, world);
  setComputeThreads(threads);
  if (options.reproducible && actualComputeThreads() != threads) {
    throw Failure(Exit::kConfiguration,
                  fmt::format("--reproducible: the math libraries take {} of {} threads, and their "
                              "sums depend on it; give --threads {}",
                              actualComputeThreads(), threads, actualComputeThreads()));
  }
  return threads;
}

bool isThereToResume(const Options& options, Communicator& team) {
  int32_t has = team.rank() == 0 && hasCheckpoint(options.resume, anyPartOf(options));
  team.broadcast(&has, &has, 1);
  return has != 0;
}

// Where the options say, or at the beginning.
void begin(const Options& options, Communicator& team, Trainer& trainer, Report* report) {
  std::string told;
  if (!options.resume.empty() && isThereToResume(options, team)) {
    trainer.resume(options.resume);
    told = fmt::format("resumed at step {}", trainer.begun());
  } else if (!options.startFrom.empty()) {
    trainer.goOn(options.startFrom, options.keep);
    told = fmt::format("started at step {} from {}, of which {} are kept", trainer.begun(),
                       options.startFrom, fmt::join(options.keepNames, ", "));
  }
  if (report == nullptr) return;
  if (!told.empty()) report->head(told);
  report->open(trainer.begun());
}

// Of a run that ends by what all ranks know of: what its steps came to is written all the same. Ranks on
// their own do not know of each other's ends.
void reportEarlyEnd(const Options& options, Communicator& world, Trainer& trainer,
                    const PaceMeter& meter, int threads, const std::string& why, Report* report) {
  if (options.independent) return;
  if (meter.empty()) {
    if (report != nullptr) report->finishWithoutSteps("no step was made");
    return;
  }
  try {
    summarizeRun(options, world, trainer, meter, threads, why, report);
  } catch (const Error&) {  // a rank died as well; why this one ends is known
  }
}

std::string sigtermInWords(const Trainer& trainer) {
  return fmt::format("ended by SIGTERM after {} steps", trainer.begun());
}

int tellSigterm(const Options& options, const Trainer& trainer, const Report* report) {
  const std::string what =
      options.save.empty() ? std::string("nothing is saved; --save DIR would have")
                           : fmt::format("saved in {}; the same command with --resume {} goes on",
                                         options.save, options.save);
  if (report != nullptr) fmt::print(stderr, "weft-train: {}: {}\n", sigtermInWords(trainer), what);
  return static_cast<int>(Exit::kPeerLost);
}

}  // namespace

int train(Options options, Communicator& world, Communicator& team, Summary* summary) {
  onRankZero(world, [&] { checkFiles(options); });
  const TrainingData data(options);
  const int threads = takeThreads(options, world);
  keepMemoryOfTensors();
  ParallelGroups groups(team, anyPartOf(options), options.reproducible);
  const Partition partition = partitionFor(options, groups, data);
  groups.cutInto(options.blocks = partition.blocks);
  Trainer trainer(options, groups, data);
  checkAttentionFits(options, bytesOfThisHost());

  std::optional<Report> ofRankZero;
  if (world.rank() == 0) ofRankZero.emplace(options, world.size());
  Report* const report = ofRankZero ? &*ofRankZero : nullptr;
  if (report != nullptr) printHead(*report, options, world, threads, trainer, data);
  if (report != nullptr && !partition.told.empty())
    report->head("blocks of stages " + partition.told);
  begin(options, team, trainer, report);
  world.barrier();

  const DeferSigterm whileThereIsWork;
  PaceMeter meter;
  try {
    const Stop stop = makeSteps(options, trainer, meter, report);
    if (!options.save.empty()) trainer.save(options.save, true);
    if (stop == Stop::kTerminated) {
      reportEarlyEnd(options, world, trainer, meter, threads, sigtermInWords(trainer), report);
      return tellSigterm(options, trainer, report);
    }
    if (!options.exportTo.empty()) trainer.exportTo(options.exportTo);
  } catch (const SharedFailure& failure) {
    reportEarlyEnd(options, world, trainer, meter, threads, failure.what(), report);
    throw;
  }
  if (meter.empty()) {
    if (report != nullptr)
      report->finishWithoutSteps(fmt::format("all {} steps are done already", options.steps));
    return 0;
  }
  if (const auto made = summarizeRun(options, world, trainer, meter, threads, "", report))
    *summary = *made;
  return report != nullptr && !report->isComplete() ? static_cast<int>(Exit::kCannotWrite) : 0;
}

}  // namespace weft::train
