// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/shard.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "reference.h"
#include "steps.h"
#include "world.h"

// Training without a model, through the public API: gradients are a function of step, rank,
// parameter and element.
namespace weft::testing {

enum Parameter : std::size_t { kEmbedding, kNorm, kFrozen, kWeight, kOutput, kBias };
inline weftParam_t param(const char* name, std::size_t elements, unsigned flags, int tiedTo = -1) {
  weftParam_t p{};
  p.name = name;
  p.elements = elements;
  p.flags = flags;
  p.tiedTo = tiedTo;
  return p;
}
inline std::vector<weftParam_t> smallModel() {
  return {param("embedding", 3000, 0),
          param("norm", 7, WEFT_PARAM_NO_DECAY),
          param("frozen", 11, WEFT_PARAM_FROZEN),
          param("weight", 5001, 0),
          param("output", 3000, 0, kEmbedding),
          param("bias", 1, WEFT_PARAM_NO_DECAY)};
}
inline bool isTrained(const weftParam_t& p) {
  return (p.flags & WEFT_PARAM_FROZEN) == 0 && p.tiedTo < 0;
}

struct Degrees {
  int param, grad, state;
};
inline weftShardConfig_t shardConfig(weftDataType_t type, Degrees degrees = {1, 1, 0}) {
  weftShardConfig_t c = WEFT_SHARD_CONFIG_INITIALIZER;
  c.paramDegree = degrees.param;
  c.gradDegree = degrees.grad;
  c.stateDegree = degrees.state;
  c.paramType = c.gradType = c.wireType = type;
  c.bucketElements = 4000;
  return c;
}
inline weftStepArgs_t stepArgs(double learningRate = 0.01) {
  weftStepArgs_t args = WEFT_STEP_ARGS_INITIALIZER;
  args.learningRate = learningRate;
  return args;
}

inline float noise(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u ^ b * 0xbf58476d1ce4e5b9u ^ c * 0x94d049bb133111ebu;
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  return static_cast<float>(x & 0xffffff) / 8388608.0f - 1.0f;
}
inline float initialAt(std::size_t p, std::size_t i) { return noise(1, p, i); }
// `micro` counts the micro-batches of all ranks and steps.
inline float gradientAt(int micro, std::size_t p, std::size_t i) {
  return 0.1f * noise(static_cast<std::uint64_t>(2 + micro), p, i);
}

// One rank's shard of the small model, and what a training loop does with it.
class Shard {
 public:
  Shard(Steps& steps, const Rank& r, const weftShardConfig_t& config)
      : steps_(steps), rank_(r), config_(config), model_(smallModel()) {
    steps.ok(weftShardCreate(&shard_, r.comm, model_.data(), model_.size(), &config), "create");
  }
  ~Shard() { weftShardDestroy(shard_); }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  operator weftShard_t() const { return shard_; }

  std::byte* weights(std::size_t p) const { return buffer(p, 0); }
  std::byte* gradient(std::size_t p) const { return buffer(p, 1); }

  // Rank 0's weights are those that count.
  bool start() {
    if (shard_ == nullptr) return false;
    for (std::size_t p = 0; p < model_.size(); ++p)
      for (std::size_t i = 0; model_[p].tiedTo < 0 && i < model_[p].elements; ++i)
        store(weights(p) + i * sizeOf(config_.paramType), config_.paramType,
              rank_.rank == 0 ? initialAt(p, i) : 0.5);
    return steps_.ok(weftShardStart(shard_, 0), "start");
  }

  // What backward adds.
  void addGradient(int micro, std::size_t p) {
    const std::size_t size = sizeOf(config_.gradType);
    for (std::size_t i = 0; i < model_[p].elements; ++i) {
      std::byte* const at = gradient(p) + i * size;
      store(at, config_.gradType, load(at, config_.gradType) + gradientAt(micro, p, i));
    }
  }
  // Fills in and declares all gradients but that of `without`, the last first.
  void backward(int micro, std::size_t without = ~std::size_t{0}) {
    for (std::size_t p = model_.size(); p-- > 0;) {
      if (!isTrained(model_[p]) || p == without) continue;
      addGradient(micro, p);
      steps_.ok(weftGradReady(shard_, p), std::string("ready ") + model_[p].name);
    }
  }
  // All of a step of `micros` micro-batches on each rank but its end.
  void passes(int number, weftStepArgs_t args, int micros = 1) {
    for (int m = 0; m < micros; ++m) {
      args.boundary = m + 1 == micros;
      steps_.ok(weftStepBegin(shard_, &args), "begin");
      backward((number * rank_.ranks + rank_.rank) * micros + m);
      steps_.ok(weftGradDone(shard_), "done");
    }
  }
  weftStepStats_t end() {
    weftStepStats_t stats{};
    stats.size = sizeof(stats);
    steps_.ok(weftStepWait(shard_, &stats), "wait");
    return stats;
  }
  weftStepStats_t step(int number, const weftStepArgs_t& args, int micros = 1) {
    passes(number, args, micros);
    return end();
  }

  // All weights, gathered.
  std::vector<float> collect() {
    std::vector<float> all;
    for (int b = 0; b < info().buckets; ++b) steps_.ok(weftParamWait(shard_, b), "wait for bucket");
    const std::size_t size = sizeOf(config_.paramType);
    for (std::size_t p = 0; p < model_.size(); ++p)
      for (std::size_t i = 0; i < model_[p].elements; ++i)
        all.push_back(static_cast<float>(load(weights(p) + i * size, config_.paramType)));
    return all;
  }
  weftShardInfo_t info() const {
    weftShardInfo_t info{};
    info.size = sizeof(info);
    steps_.ok(weftShardInfo(shard_, &info), "info");
    return info;
  }

 private:
  std::byte* buffer(std::size_t p, int which) const {
    void* both[2] = {};
    steps_.ok(weftShardBuffers(shard_, p, &both[0], &both[1]), "buffers");
    return static_cast<std::byte*>(both[which]);
  }

  Steps& steps_;
  const Rank rank_;
  const weftShardConfig_t config_;
  const std::vector<weftParam_t> model_;
  weftShard_t shard_ = nullptr;
};

// Trains a shard of its own from the start to the end.
inline std::vector<float> train(Steps& steps, const Rank& r, const weftShardConfig_t& config,
                                const weftStepArgs_t& args, int micros = 1) {
  Shard shard(steps, r, config);
  if (!shard.start()) return {};
  for (int s = 0; s < 3; ++s) shard.step(s, args, micros);
  return shard.collect();
}

// The same bytes on all ranks?
inline bool areSame(Steps& steps, const Rank& r, const void* data, std::size_t bytes) {
  std::vector<std::uint8_t> all(bytes * static_cast<std::size_t>(r.ranks));
  steps.ok(weftAllGather(data, all.data(), bytes, weftUint8, r.comm, nullptr, nullptr), "compare");
  for (std::size_t at = 0; at < all.size(); at += bytes)
    if (std::memcmp(all.data() + at, data, bytes) != 0) return false;
  return true;
}
inline bool areSame(Steps& steps, const Rank& r, const std::vector<float>& values) {
  return areSame(steps, r, values.data(), values.size() * sizeof(float));
}

inline double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  return most;
}
inline double meanDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    sum += std::abs(static_cast<double>(a[i]) - b[i]);
  return sum / static_cast<double>(a.size());
}

}  // namespace weft::testing
