// SPDX-License-Identifier: Apache-2.0
#include "tools/train/run_rank.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <optional>
#include <thread>

#include "tools/train/agreement.h"
#include "tools/train/attention_memory.h"
#include "tools/train/checkpoint_folder.h"
#include "tools/train/files.h"
#include "tools/train/launched_scaling.h"
#include "tools/train/math_libraries.h"
#include "tools/train/models/libtorch_error.h"
#include "tools/train/models/tensor_memory.h"
#include "tools/train/parallel_groups.h"
#include "tools/train/part_checkpoints.h"
#include "tools/train/partition.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/report.h"
#include "tools/train/termination.h"
#include "tools/train/trainer.h"
#include "tools/train/training_data.h"
#include "weft/weft.hpp"

namespace weft::train {
namespace {

using Clock = std::chrono::steady_clock;

Exit exitCodeOf(weftResult_t result) {
  switch (result) {
    case weftRemoteError:
    case weftTimeout:
    case weftAborted:
      return Exit::kPeerLost;
    case weftMismatch:
      return Exit::kData;
    case weftInternalError:
      return Exit::kInternal;
    default:
      return Exit::kConfiguration;
  }
}

// Cores that this process may use, shared evenly among the ranks of its host. The sums inside of an
// operation depend on its threads, so those of reproducible runs do not depend on the ranks.
int computeThreads(const Options& options, const Communicator& world) {
  if (options.threads > 0 || options.reproducible) return std::max(options.threads, 1);
  int localRank = 0, localRanks = 1;
  check(weftCommLocalRank(world, &localRank, &localRanks), world);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(cores / localRanks, 1);
}

const char* weightsInWords(const Options& options) {
  switch (options.params) {
    case Params::kBfloat16:
      return options.stochastic ? "bf16 rounded stochastically from fp32"
                                : "bf16 rounded from fp32";
    case Params::kFloat16:
      return "fp16 rounded from fp32";
    case Params::kBfloat16Only:
      return options.stochastic ? "bf16 alone, rounded stochastically" : "bf16 alone";
    default:
      return options.bf16 ? "bf16 autocast over fp32 weights" : "fp32";
  }
}

std::string partsInWords(const Options& o) {
  std::string words;
  if (o.tensor > 1)
    words += fmt::format(", each layer {}on {} ranks", o.sequenceParallel ? "and sequence " : "",
                         o.tensor);
  if (o.pipeline > 1)
    words += fmt::format(", a pipeline of {} stages of {} blocks", o.pipeline * o.virtualStages,
                         fmt::join(blocksOfRuns(o.shape, anyPartOf(o).stage), " + "));
  if (o.virtualStages > 1) words += fmt::format(", in turn on {} ranks", o.pipeline);
  return words;
}

void printHead(Report& report, const Options& o, const Communicator& world, int threads,
               const Trainer& trainer, const TrainingData& data) {
  const weftShardInfo_t info = trainer.info();
  if (!o.recipeNotes.empty()) report.head("recipe " + o.recipeNotes);
  report.head(fmt::format("weft-train: {} ranks{}, {} threads each, {}", world.size(),
                          o.independent ? " on their own" : "", threads, describeMathLibraries()));
  report.head(
      fmt::format("{}: {} layers, hidden {}, {} heads, seq {}: {:.2f} M parameters, {} (wire {}, "
                  "{} buckets of {} MB{})",
                  o.model, o.shape.layers, o.shape.hidden, o.shape.heads, o.length,
                  static_cast<double>(trainer.parameters()) / 1e6, weightsInWords(o),
                  o.wireBf16 ? "bf16" : "fp32", info.buckets, o.bucketMb,
                  o.noOverlap ? ", not overlapped" : ""));
  report.head(fmt::format("{}, shard {}{}{}: {:.1f} MB of weights, gradients and state a rank",
                          o.optimizer, o.shard, partsInWords(o),
                          o.reproducible ? ", reproducible at this --threads and --batch" : "",
                          static_cast<double>(info.bytes) / 1e6));
  const int64_t copies = world.size() / anyPartOf(o).count();
  report.head(fmt::format("data: {}; a step is {} {} x {} x {} = {} sequences; seed {}",
                          data.description(), copies, copiesInWords(o), o.batch, o.accumulate,
                          o.batch * o.accumulate * copies, o.seed));
}

// All ranks' pace, by rank.
std::vector<Pace> gatherPaces(Communicator& world, const Pace& mine) {
  std::vector<double> words = {mine.stepSeconds, mine.exposedSeconds, mine.wireBytes,
                               mine.stageWaitSeconds};
  for (const auto& [forward, backward] : mine.passes)
    words.insert(words.end(), {forward, backward});
  std::vector<double> all(words.size() * static_cast<size_t>(world.size()));
  world.allGather(words.data(), all.data(), words.size());
  std::vector<Pace> paces;
  for (auto word = all.begin(); word != all.end();) {
    Pace& pace = paces.emplace_back(Pace{word[0], word[1], word[2], word[3], {}});
    const auto end = word + static_cast<ptrdiff_t>(words.size());
    for (word += 4; word != end; word += 2) pace.passes.push_back({word[0], word[1]});
  }
  return paces;
}

// Hosts that ranks of the job are on.
int countHosts(Communicator& world) {
  int localRank = 0, localRanks = 1;
  check(weftCommLocalRank(world, &localRank, &localRanks), world);
  const int32_t leads = localRank == 0;
  std::vector<int32_t> all(static_cast<size_t>(world.size()));
  world.allGather(&leads, all.data(), 1);
  return std::accumulate(all.begin(), all.end(), 0);
}

// Ranks of a stage follow each other; what they took is their mean.
PipelineSummary summarizePipeline(const Options& options, const std::vector<Pace>& paces) {
  const PipelineStage stage = anyPartOf(options).stage;
  const size_t ofStage = paces.size() / static_cast<size_t>(stage.count);
  const auto ranks = static_cast<double>(paces.size());
  PipelineSummary summary{0, pipelineBubble(stage, options.accumulate), 0};
  std::vector<PassSeconds> runs(static_cast<size_t>(stage.runs()));
  for (size_t rank = 0; rank < paces.size(); ++rank) {
    const Pace& pace = paces[rank];
    summary.idle += pace.stageWaitSeconds / pace.stepSeconds / ranks;
    const auto index = static_cast<int64_t>(rank / ofStage);
    for (int64_t own = 0; own < stage.virtuals; ++own) {
      PassSeconds& run = runs[static_cast<size_t>(own * stage.count + index)];
      run.forward += pace.passes[static_cast<size_t>(own)].forward / static_cast<double>(ofStage);
      run.backward += pace.passes[static_cast<size_t>(own)].backward / static_cast<double>(ofStage);
    }
  }
  summary.ofUnequalRuns = replayStep(stage, options.accumulate, runs).idle;
  return summary;
}

Summary summarize(const Options& options, const std::vector<Pace>& paces) {
  Summary summary;
  summary.ranks = static_cast<int>(paces.size());
  for (const Pace& pace : paces) {
    summary.sequencesPerSecond += static_cast<double>(options.batch * options.accumulate) /
                                  static_cast<double>(anyPartOf(options).count()) /
                                  pace.stepSeconds;
    summary.stepMs += pace.stepSeconds * 1e3 / static_cast<double>(paces.size());
    summary.exposedMs += pace.exposedSeconds * 1e3 / static_cast<double>(paces.size());
    summary.wireBytes += pace.wireBytes / static_cast<double>(paces.size());
  }
  if (options.pipeline > 1) summary.pipeline = summarizePipeline(options, paces);
  summary.tokensPerSecond = summary.sequencesPerSecond * static_cast<double>(options.length);
  return summary;
}

bool isThereToResume(const Options& options, Communicator& team) {
  int32_t has = team.rank() == 0 && hasCheckpoint(options.resume, anyPartOf(options));
  team.broadcast(&has, &has, 1);
  return has != 0;
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

// The most memory that this process has had so far.
double peakResidentBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

// Collective, after a step at least. On rank 0, which has the report, and finishes it. `failure`: why
// the run ends, or empty: else its weights are compared.
std::optional<Summary> summarizeRun(const Options& options, Communicator& world, Trainer& trainer,
                                    const PaceMeter& meter, int threads, const std::string& failure,
                                    Report* report) {
  const std::vector<Pace> paces = gatherPaces(world, meter.pace());
  const int hosts = countHosts(world);
  std::optional<uint64_t> weights;
  if (failure.empty()) weights = trainer.weightsFingerprint("final weights");
  if (report == nullptr) return {};
  Summary summary = summarize(options, paces);
  summary.hosts = hosts;
  summary.threads = threads;
  const double msOfStep = 1e3 / static_cast<double>(meter.steps());
  const auto [made, waited, first] = trainer.loading();
  summary.loading = {made * msOfStep, waited * msOfStep, first * 1e3};
  if (const auto offloaded = trainer.offloaded())
    summary.offload = {static_cast<double>(offloaded->put) / static_cast<double>(meter.steps()),
                       static_cast<double>(offloaded->read) / static_cast<double>(meter.steps()),
                       offloaded->waited * msOfStep};
  summary.peakResidentBytes = peakResidentBytes();
  summary.weights = weights;
  summary.failure = failure;
  summary.parameters = static_cast<double>(trainer.parameters());
  summary.memoryBytes = static_cast<double>(trainer.info().bytes);
  report->finish(summary);
  return summary;
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

// Returns the exit code.
int train(Options options, Communicator& world, Communicator& team, Summary* summary) {
  onRankZero(world, [&] { checkFiles(options); });
  const TrainingData data(options);
  const int threads = computeThreads(options, world);
  setComputeThreads(threads);
  keepMemoryOfTensors();
  if (options.reproducible && actualComputeThreads() != threads) {
    throw Failure(Exit::kConfiguration,
                  fmt::format("--reproducible: the math libraries take {} of {} threads, and their "
                              "sums depend on it; give --threads {}",
                              actualComputeThreads(), threads, actualComputeThreads()));
  }
  ParallelGroups groups(team, anyPartOf(options), options.reproducible);
  const Partition partition = partitionFor(options, groups, data);
  groups.cutInto(options.blocks = partition.blocks);
  Trainer trainer(options, groups, data);
  checkAttentionFits(options, bytesOfThisHost());

  std::optional<Report> report;
  if (world.rank() == 0) {
    report.emplace(options, world.size());
    printHead(*report, options, world, threads, trainer, data);
    if (!partition.told.empty()) report->head("blocks of stages " + partition.told);
  }
  if (!options.resume.empty() && isThereToResume(options, team)) {
    trainer.resume(options.resume);
    if (report) report->head(fmt::format("resumed at step {}", trainer.begun()));
  } else if (!options.startFrom.empty()) {
    trainer.goOn(options.startFrom, options.keep);
    if (report)
      report->head(fmt::format("started at step {} from {}, of which {} are kept", trainer.begun(),
                               options.startFrom, fmt::join(options.keepNames, ", ")));
  }
  if (report) report->open(trainer.begun());
  world.barrier();

  const DeferSigterm whileThereIsWork;
  PaceMeter meter;
  Report* const told = report ? &*report : nullptr;
  try {
    const StepReport last = makeSteps(options, trainer, meter, told);
    if (!options.save.empty()) trainer.save(options.save, true);
    if (last.stop == Stop::kTerminated) return endEarly(options, trainer, world);
    if (!options.exportTo.empty()) trainer.exportTo(options.exportTo);
  } catch (const SharedFailure& failure) {
    reportFailure(options, world, trainer, meter, threads, failure.what(), told);
    throw;
  }
  if (meter.empty()) {
    if (report)
      report->finishWithoutSteps(fmt::format("all {} steps are done already", options.steps));
    return 0;
  }
  if (const auto made = summarizeRun(options, world, trainer, meter, threads, "", told))
    *summary = *made;
  return report && !report->isComplete() ? static_cast<int>(Exit::kCannotWrite) : 0;
}

// The first of a team speaks for all of it. A launcher that sees a rank end with an error ends the
// others: not before that one has spoken.
int tell(const SharedFailure& failure, Communicator& world, Communicator& team) {
  const bool alone = team.size() < world.size();
  const std::string who = alone ? fmt::format("rank {} alone: ", world.rank()) : "";
  if (team.rank() == 0) fmt::print(stderr, "weft-train: {}{}\n", who, failure.what());
  try {
    team.barrier();
  } catch (const Error&) {  // a rank died after all; everything has been said
  }
  return failure.code();
}

// A training, or a table of several, as the only work of this process.
int run(const Options& options, Communicator& world) {
  if (options.scaling.empty()) {
    Summary summary;
    return trainOn(forRanks(options, world.size()), world, &summary);
  }
  try {
    scaleOnLaunchedRanks(options, world);
    return 0;
  } catch (const SharedFailure& failure) {
    return tell(failure, world, world);
  }
}

}  // namespace

int trainOn(const Options& options, Communicator& ranks, Summary* summary) {
  const int copy = ranks.rank() / static_cast<int>(anyPartOf(options).count());  // of the model
  Communicator alone = options.independent ? ranks.split(copy, ranks.rank()) : Communicator();
  Communicator& team = options.independent ? alone : ranks;
  try {
    const int code = train(options, ranks, team, summary);
    ranks.finalize();
    return code;
  } catch (const SharedFailure& failure) {
    return tell(failure, ranks, team);
  }
}

int runRank(const Options& options) {
  int rank = 0;
  const auto fail = [&](Exit code, const std::string& sentence) {
    fmt::print(stderr, "weft-train: rank {}: {}\n", rank, sentence);
    return static_cast<int>(code);
  };
  try {
    Communicator world = Communicator::fromEnvironment();
    rank = world.rank();
    return run(options, world);
  } catch (const Failure& failure) {
    return fail(static_cast<Exit>(failure.code()), failure.what());
  } catch (const tools::CannotWrite& error) {
    return fail(Exit::kCannotWrite, error.what());
  } catch (const Error& error) {
    return fail(exitCodeOf(error.result()), error.what());
  } catch (const c10::Error& error) {
    const Failure failure = failureOf(error);
    return fail(static_cast<Exit>(failure.code()), failure.what());
  } catch (const std::bad_alloc&) {
    return fail(Exit::kConfiguration, "there is no memory left; lower --seq, --batch or the model");
  } catch (const std::exception& error) {
    return fail(Exit::kInternal, error.what());
  }
}

}  // namespace weft::train
