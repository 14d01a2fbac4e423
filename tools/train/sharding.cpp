// SPDX-License-Identifier: Apache-2.0
#include "tools/train/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ranges>

namespace weft::train {
namespace {

int optimizerOf(const std::string& name) {
  if (name == "lamb") return weftOptLamb;
  return name == "sgd" ? weftOptSgd : weftOptAdamW;
}

int localRanksOf(const Communicator& team) {
  int rank = 0, ranks = 1;
  check(weftCommLocalRank(team, &rank, &ranks), team);
  return ranks;
}

weftShardConfig_t configOf(const Options& options, const Communicator& team) {
  const Degrees degrees = parseDegrees(options.shard, team.size(), localRanksOf(team));
  weftShardConfig_t config = WEFT_SHARD_CONFIG_INITIALIZER;
  config.paramDegree = degrees.param;
  config.gradDegree = degrees.grad;
  config.stateDegree = degrees.state;
  config.paramType = options.params == Params::kFloat32 ? weftFloat32 : weftBfloat16;
  config.gradType = weftFloat32;
  config.wireType = options.wireBf16 ? weftBfloat16 : weftFloat32;
  config.master = options.params != Params::kBfloat16Only;
  config.optimizer = optimizerOf(options.optimizer);
  config.beta1 = options.beta1;
  config.beta2 = options.beta2;
  config.momentum = options.momentum;
  config.rounding = options.stochastic ? weftRoundStochastic : weftRoundNearest;
  config.seed = options.seed;
  config.bucketElements =
      static_cast<size_t>(std::max(options.bucketMb * 1e6 / sizeof(float), 1.0));
  config.reproducible = options.reproducible;
  return config;
}

}  // namespace

ShardedParameters::ShardedParameters(const Options& options, Communicator& team,
                                     const std::vector<Parameter>& parameters) {
  std::vector<weftParam_t> list;
  std::vector<std::vector<size_t>> shapes;
  for (const Parameter& p : parameters) shapes.emplace_back(p.shape.begin(), p.shape.end());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    list.push_back({p.name.c_str(), p.size(), p.decay ? 0 : WEFT_PARAM_NO_DECAY, -1,
                    shapes[i].data(), static_cast<int>(shapes[i].size())});
  }
  const weftShardConfig_t config = configOf(options, team);
  weftShard_t made = nullptr;
  weft::check(weftShardCreate(&made, team, list.data(), list.size(), &config));
  shard_ = Owner(made);
  for (size_t i = 0; i < list.size(); ++i) {
    int bucket = 0;
    check(weftShardBucket(shard_, i, &bucket));
    buckets_.push_back(bucket);
  }
  users_.assign(static_cast<size_t>(info().buckets), 0);
}

std::vector<ParameterMemory> ShardedParameters::memory() const {
  std::vector<ParameterMemory> memory(buckets_.size());
  for (size_t i = 0; i < memory.size(); ++i)
    check(weftShardBuffers(shard_, i, &memory[i].weights, &memory[i].gradient));
  return memory;
}

weftShardInfo_t ShardedParameters::info() const {
  weftShardInfo_t info{};
  info.size = sizeof(info);
  check(weftShardInfo(shard_, &info));
  return info;
}

std::set<int> ShardedParameters::bucketsOf(size_t first, size_t count) const {
  return {buckets_.begin() + static_cast<std::ptrdiff_t>(first),
          buckets_.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

// Forward uses the last bucket first.
void ShardedParameters::acquire(size_t first, size_t count, Pass pass) {
  const std::set<int> used = bucketsOf(first, count);
  for (const int bucket : std::views::reverse(used)) {
    if (users_[static_cast<size_t>(bucket)]++ == 0) check(weftParamWait(shard_, bucket));
  }
  const int next = pass == Pass::kForward ? *used.begin() - 1 : *used.rbegin() + 1;
  if (next >= 0 && next < static_cast<int>(users_.size())) check(weftParamPrefetch(shard_, next));
}

void ShardedParameters::release(size_t first, size_t count) {
  for (const int bucket : bucketsOf(first, count)) {
    if (--users_[static_cast<size_t>(bucket)] == 0) check(weftParamRelease(shard_, bucket));
  }
}

void ShardedParameters::acquireAll() {
  for (int bucket = info().buckets; bucket-- > 0;) check(weftParamWait(shard_, bucket));
}

}  // namespace weft::train
