// SPDX-License-Identifier: Apache-2.0
#include "tools/train/train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "tools/train/agreement.h"
#include "tools/train/attention_memory.h"
#include "tools/train/checkpoint_folder.h"
#include "tools/train/files.h"
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

using Clock = std::chrono::steady_clock;

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

// All steps until one is the last; the report of that one.
StepReport makeSteps(const Options& options, Trainer& trainer, PaceMeter& meter, Report* report) {
  StepReport last{};
  const auto take = [&](const std::optional<StepReport>& ended,
                        const std::optional<Evaluation>& evaluation = {}) {
    if (!ended) return;
    last = *ended;
    meter.add(last);
    if (report != nullptr) report->add(last, evaluation);
  };
  const auto isTurn = [&](int64_t every) { return every > 0 && trainer.begun() % every == 0; };
  const auto start = Clock::now();
  const auto wantsStop = [&] {
    if (DeferSigterm::hasCome()) return Stop::kTerminated;
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    return options.seconds > 0 && elapsed > options.seconds ? Stop::kTimeIsUp : Stop::kNo;
  };
  const bool evaluatesEnd = options.classifies && trainer.validates();
  while (trainer.begun() < options.steps && last.stop == Stop::kNo) {
    take(trainer.step(wantsStop));
    if (isTurn(options.evalEvery) || (evaluatesEnd && trainer.begun() == options.steps)) {
      const std::optional<StepReport> ended = trainer.finish();
      take(ended, trainer.evaluate());
    }
    if (!isTurn(options.saveEvery)) continue;
    take(trainer.finish());
    trainer.save(options.save, false);
  }
  take(trainer.finish());
  if (!evaluatesEnd || last.stop != Stop::kTimeIsUp) return last;
  const Evaluation found = trainer.evaluate();
  if (report != nullptr) report->addEvaluation(last.step, found);
  return last;
}

int endEarly(const Options& options, const Trainer& trainer, const Communicator& world) {
  const std::string what =
      options.save.empty() ? std::string("nothing is saved; --save DIR would have")
                           : fmt::format("saved in {}; the same command with --resume {} goes on",
                                         options.save, options.save);
  if (world.rank() == 0)
    fmt::print(stderr, "weft-train: ended by SIGTERM after {} steps: {}\n", trainer.begun(), what);
  return static_cast<int>(Exit::kPeerLost);
}

// Of a run that ends by what all ranks know of: what its steps came to is written all the same. Ranks on
// their own do not know of each other's failures.
void reportFailure(const Options& options, Communicator& world, Trainer& trainer,
                   const PaceMeter& meter, int threads, const std::string& failure,
                   Report* report) {
  if (options.independent) return;
  if (meter.empty()) {
    if (report != nullptr) report->finishWithoutSteps("no step was made");
    return;
  }
  try {
    summarizeRun(options, world, trainer, meter, threads, failure, report);
  } catch (const Error&) {  // a rank died as well; the failure is what ends this one
  }
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
    const StepReport last = makeSteps(options, trainer, meter, report);
    if (!options.save.empty()) trainer.save(options.save, true);
    if (last.stop == Stop::kTerminated) return endEarly(options, trainer, world);
    if (!options.exportTo.empty()) trainer.exportTo(options.exportTo);
  } catch (const SharedFailure& failure) {
    reportFailure(options, world, trainer, meter, threads, failure.what(), report);
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
