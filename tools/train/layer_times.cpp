// SPDX-License-Identifier: Apache-2.0
#include "tools/train/layer_times.h"

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "perf/common/median.h"
#include "tools/train/model.h"
#include "tools/train/sharding.h"
#include "tools/train/stopwatch.h"

namespace weft::train {
namespace {

constexpr int kRuns = 5;  // and one before them, in which libraries get ready

using Seconds = std::array<double, 3>;  // by layer

// Adds up what passes through each layer take, between the hooks around it.
class LayerWatch {
 public:
  explicit LayerWatch(const Parameters& parameters) {
    for (const Layer& layer : parameters.layers) layers_[layer.first] = layers_.size();
  }

  // A tied embedding comes along with the head, whose time it is.
  LayerHooks hooks() {
    return {.before =
                [this](size_t first, size_t, Pass) {
                  running_ = layers_.at(first);
                  since_ = Stopwatch();
                },
            .after =
                [this](size_t first, size_t, Pass) {
                  const size_t layer = layers_.at(first);
                  if (layer != running_) return;
                  taken_[layer] += since_.seconds();
                }};
  }

  Seconds take() { return std::exchange(taken_, {}); }

 private:
  std::map<size_t, size_t> layers_;  // by first parameter
  size_t running_ = 0;
  Stopwatch since_;
  Seconds taken_{};
};

// Of this rank, by run.
std::vector<Seconds> timesOfRuns(const Options& options, const ModelGroups& groups,
                                 const Batch& batch) {
  ModelShape shape = options.shape;
  shape.layers = 1;
  const Parameters own = parametersOf(shape, groups.part);
  std::vector<std::vector<float>> weights, gradients;
  std::vector<ParameterMemory> memory;
  for (const Parameter& p : own.list)
    memory.push_back(
        {weights.emplace_back(p.size()).data(), gradients.emplace_back(p.size()).data()});
  Model model(shape, computeOf(options), elementOf(options), Element::kFloat32, memory, groups);
  model.initialize(options.seed);
  model.dropOut(options.dropout, options.seed);
  if (options.recompute) model.recomputeBlocks();
  LayerWatch watch(own);
  model.onLayer(watch.hooks());
  std::vector<Seconds> runs;
  for (int run = 0; run <= kRuns; ++run) {
    model.forward(batch);
    model.backward(1.0);
    const Seconds taken = watch.take();
    if (run > 0) runs.push_back(taken);
  }
  return runs;
}

// Of each layer.
Seconds medians(const std::vector<Seconds>& all) {
  Seconds middle{};
  for (size_t layer = 0; layer < middle.size(); ++layer) {
    std::vector<double> values;
    for (const Seconds& each : all) values.push_back(each[layer]);
    middle[layer] = tools::median(std::move(values));
  }
  return middle;
}

}  // namespace

LayerTimes measureLayers(const Options& options, ParallelGroups& groups, const Batch& batch) {
  ModelGroups whole = groups.model(options.sequenceParallel);
  whole.part.stage = {};
  whole.before = whole.after = {};
  const Seconds mine = medians(timesOfRuns(options, whole, batch));
  std::vector<Seconds> all(static_cast<size_t>(groups.all().size()));
  groups.all().allGather(mine.data(), all.front().data(), mine.size());
  const auto [embedding, block, head] = medians(all);
  return {embedding, block, head};
}

}  // namespace weft::train
