// SPDX-License-Identifier: Apache-2.0
#include "tools/train/summarize_run.h"

#include <sys/resource.h>

#include <numeric>
#include <vector>

#include "tools/train/parts_of_model.h"
#include "tools/train/pipeline_replay.h"

namespace weft::train {
namespace {

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

// The most memory that this process has had so far.
double peakResidentBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace

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

}  // namespace weft::train
