// SPDX-License-Identifier: Apache-2.0
#include "tools/train/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tools/train/agreement.h"
#include "tools/train/layer_cut.h"
#include "tools/train/layer_times.h"
#include "tools/train/part_checkpoints.h"
#include "tools/train/parts_of_model.h"

namespace weft::train {
namespace {

// Of the checkpoint in a folder.
std::vector<int64_t> blocksIn(const std::string& folder, const Options& options) {
  const ModelPart any = anyPartOf(options);
  std::vector<int64_t> blocks = blocksOfSave(folder, any, lastSaveOfAll(folder, any).value());
  const int64_t layers = std::accumulate(blocks.begin(), blocks.end(), int64_t{0});
  if (!blocks.empty() && layers != options.shape.layers)
    throw Failure(Exit::kData,
                  fmt::format("the checkpoint in {} is of {} layers, and this model has {}; fix: "
                              "--layers {}",
                              folder, layers, options.shape.layers, layers));
  return blocks;
}

// Of what the run goes on from, if there is anything. Collective: rank 0 looks.
std::optional<std::vector<int64_t>> blocksOfCheckpoint(const Options& options, Communicator& all) {
  const auto runs = static_cast<size_t>(anyPartOf(options).stage.runs());
  std::vector<int64_t> words(runs + 1);  // the last one: is there anything?
  onRankZero(all, [&] {
    for (const std::string& folder : {options.resume, options.startFrom}) {
      if (words[runs] != 0 || folder.empty() || !hasCheckpoint(folder, anyPartOf(options)))
        continue;
      words[runs] = 1;
      std::ranges::copy(blocksIn(folder, options), words.begin());
    }
  });
  all.broadcast(words.data(), words.data(), words.size());
  if (words[runs] == 0) return {};
  if (words[0] == 0) return std::vector<int64_t>();
  words.pop_back();
  return words;
}

// Of each block, what is before the first one and after the last one counted in.
std::vector<double> costsOf(const LayerTimes& times, int64_t blocks) {
  std::vector<double> costs(static_cast<size_t>(blocks), times.block);
  costs.front() += times.embedding;
  costs.back() += times.head;
  return costs;
}

// Milliseconds that each stage takes for a batch.
std::vector<double> expectedMs(const std::vector<int64_t>& blocks, const std::vector<double>& costs,
                               int64_t stages) {
  std::vector<double> ms(static_cast<size_t>(stages));
  auto next = costs.begin();
  for (size_t run = 0; run < blocks.size(); ++run)
    for (int64_t block = 0; block < blocks[run]; ++block) ms[run % ms.size()] += *next++ * 1e3;
  return ms;
}

Partition measured(const Options& options, ParallelGroups& groups, const TrainingData& data) {
  const auto samples = static_cast<size_t>(options.batch);
  const auto source = data.training(samples * static_cast<size_t>(groups.all().size()));
  const LayerTimes times = measureLayers(options, groups, source->batch(0, 0, samples));
  const PipelineStage& stage = groups.part().stage;
  const std::vector<double> costs = costsOf(times, options.shape.layers);
  std::vector<int64_t> blocks = cheapestCut(costs, stage.runs());
  const auto ms = expectedMs(blocks, costs, stage.count);
  return {
      std::move(blocks),
      fmt::format("by measured times: embedding {:.2f} ms a batch, block {:.2f}, head {:.2f}; "
                  "stages should take {:.2f} ms",
                  times.embedding * 1e3, times.block * 1e3, times.head * 1e3, fmt::join(ms, ", "))};
}

}  // namespace

Partition partitionFor(const Options& options, ParallelGroups& groups, const TrainingData& data) {
  if (options.pipeline == 1) return {};
  if (const auto blocks = blocksOfCheckpoint(options, groups.all()))
    return {*blocks, "as in the checkpoint"};
  return options.partitionIsMeasured ? measured(options, groups, data) : Partition();
}

}  // namespace weft::train
