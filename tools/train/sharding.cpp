// SPDX-License-Identifier: Apache-2.0
#include "tools/train/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace weft::train {
namespace {

int optimizerOf(const std::string& name) {
  if (name == "lamb") return weftOptLamb;
  if (name == "lans") return weftOptLans;
  return name == "sgd" ? weftOptSgd : weftOptAdamW;
}

weftDataType_t parameterTypeOf(Params params) {
  if (params == Params::kFloat16) return weftFloat16;
  return params == Params::kFloat32 ? weftFloat32 : weftBfloat16;
}

int localRanksOf(const Communicator& team) {
  int rank = 0, ranks = 1;
  check(weftCommLocalRank(team, &rank, &ranks), team);
  return ranks;
}

weftShardConfig_t configOf(const Options& options, ParallelGroups& groups) {
  const Communicator& team = groups.data();
  const Degrees degrees = parseDegrees(options.shard, team.size(), localRanksOf(team));
  weftShardConfig_t config = WEFT_SHARD_CONFIG_INITIALIZER;
  config.paramDegree = degrees.param;
  config.gradDegree = degrees.grad;
  config.stateDegree = degrees.state;
  config.paramType = parameterTypeOf(options.params);
  config.gradType = weftFloat32;
  config.wireType = options.wireBf16 ? weftBfloat16 : weftFloat32;
  config.master = options.params != Params::kBfloat16Only;
  config.optimizer = optimizerOf(options.optimizer);
  config.beta1 = options.beta1;
  config.beta2 = options.beta2;
  config.epsilon = options.epsilon;
  config.momentum = options.momentum;
  config.rounding = options.stochastic ? weftRoundStochastic : weftRoundNearest;
  config.seed = options.seed;
  config.bucketElements =
      static_cast<size_t>(std::max(options.bucketMb * 1e6 / sizeof(float), 1.0));
  config.reproducible = options.reproducible;
  if (groups.parts() != nullptr) config.parts = *groups.parts();
  return config;
}

unsigned flagsOf(const Parameters& all, size_t i, const ModelPart& part) {
  const Parameter& parameter = all.list[i];
  const bool isOfTensorGroup = part.tensor.index > 0 && parameter.split == Split{};
  const bool isOfFirstStage = all.firstIsInTwoStages && i == 0 && !part.stage.isFirst();
  const bool isCopy = isOfTensorGroup || isOfFirstStage;
  const bool isSplit = part.tensor.count > 1 && parameter.split != Split{};
  return (parameter.decay ? 0 : WEFT_PARAM_NO_DECAY) | (isCopy ? WEFT_PARAM_COPY : 0) |
         (isSplit ? WEFT_PARAM_SPLIT : 0);
}

}  // namespace

Element elementOf(const Options& options) {
  if (options.params == Params::kFloat16) return Element::kFloat16;
  return options.params == Params::kFloat32 ? Element::kFloat32 : Element::kBfloat16;
}

Compute computeOf(const Options& options) {
  return options.bf16 ? Compute::kAutocastBfloat16 : Compute::kAsWeights;
}

ShardedParameters::ShardedParameters(const Options& options, ParallelGroups& groups,
                                     const Parameters& parameters)
    : count_(parameters.list.size()) {
  std::vector<weftParam_t> list;
  std::vector<std::vector<size_t>> shapes;
  for (const Parameter& p : parameters.list) shapes.emplace_back(p.shape.begin(), p.shape.end());
  for (size_t i = 0; i < count_; ++i) {
    const Parameter& p = parameters.list[i];
    list.push_back({p.name.c_str(), p.size(), flagsOf(parameters, i, groups.part()), -1,
                    shapes[i].data(), static_cast<int>(shapes[i].size())});
  }
  const weftShardConfig_t config = configOf(options, groups);
  weftShard_t made = nullptr;
  weft::check(weftShardCreate(&made, groups.data(), list.data(), list.size(), &config));
  shard_ = Owner(made);
  findLayers(parameters);
}

void ShardedParameters::findLayers(const Parameters& parameters) {
  for (const std::vector<size_t>& run : parameters.runs) {
    std::vector<std::set<int>> buckets(run.size());
    for (size_t layer = 0; layer < run.size(); ++layer) {
      const auto [first, count] = parameters.layers[run[layer]];
      layers_[first] = {residency_.size(), layer};
      for (size_t i = first; i < first + count; ++i) {
        int bucket = 0;
        check(weftShardBucket(shard_, i, &bucket));
        buckets[layer].insert(bucket);
      }
    }
    const bool hasFirst = run.front() == 0;
    residency_.emplace_back(std::move(buckets),
                            hasFirst ? parameters.firstLayer : FirstLayer::kIsFirst);
  }
}

ParameterMemory ShardedParameters::memoryOf(size_t parameter) const {
  ParameterMemory memory{};
  check(weftShardBuffers(shard_, parameter, &memory.weights, &memory.gradient));
  return memory;
}

std::vector<ParameterMemory> ShardedParameters::memory() const {
  std::vector<ParameterMemory> all;
  for (size_t i = 0; i < count_; ++i) all.push_back(memoryOf(i));
  return all;
}

weftShardInfo_t ShardedParameters::info() const {
  weftShardInfo_t info{};
  info.size = sizeof(info);
  check(weftShardInfo(shard_, &info));
  return info;
}

void ShardedParameters::acquire(size_t first, Pass pass) {
  const auto [run, layer] = layers_.at(first);
  const Residency::Wanted wanted = residency_[run].use(layer, pass);
  for (const int bucket : wanted.now) check(weftParamWait(shard_, bucket));
  if (wanted.next >= 0) check(weftParamPrefetch(shard_, wanted.next));
}

void ShardedParameters::release(size_t first, Pass pass) {
  const auto [run, layer] = layers_.at(first);
  for (const int bucket : residency_[run].leave(layer, pass))
    check(weftParamRelease(shard_, bucket));
}

void ShardedParameters::acquireAll() {
  for (int bucket = info().buckets; bucket-- > 0;) check(weftParamWait(shard_, bucket));
}

}  // namespace weft::train
