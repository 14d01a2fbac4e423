// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "base/threads.h"
#include "comm/create.h"
#include "shard/sharded_optimizer.h"

// A training run without a model: gradients are a function of step, micro-batch, parameter and
// element, so that every way of sharing them must come to the same weights.
namespace weft::test {
using namespace shard;

struct Training {
  int ranks = 1;
  int steps = 3;
  int microBatches = 1;  // of all ranks together, a multiple of ranks
  ShardConfig config;
  double clipNorm = 0;
  double weightDecay = 0.1;
  std::string transport = "auto";
  int threads = 1;  // of a rank
  engine::Pool pool = {};
  int first = 0;                                         // the step that it begins with
  std::vector<ParameterSpec> model = {};                 // none: smallModel()
  std::function<Status(ShardedOptimizer&)> resume = {};  // in place of initial parameters
  std::function<Status(ShardedOptimizer&, int)> afterStep = {};
  std::function<void(ShardedOptimizer&)> inBackward = {};  // before gradients are added
};

inline std::vector<ParameterSpec> smallModel() {
  return {{.name = "embedding", .elements = 3000},
          {.name = "norm", .elements = 7, .noDecay = true},
          {.name = "frozen", .elements = 11, .frozen = true},
          {.name = "weight", .elements = 5001},
          {.name = "output", .elements = 3000, .tiedTo = 0},
          {.name = "bias", .elements = 1, .noDecay = true}};
}

inline ShardConfig fp32Config(Degrees degrees) {
  ShardConfig c;
  c.degrees = degrees;
  c.paramType = c.gradType = c.wireType = reduce::DType::F32;
  c.bucketElements = 4000;
  return c;
}

inline float noise(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u ^ b * 0xbf58476d1ce4e5b9u ^ c * 0x94d049bb133111ebu;
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  return static_cast<float>(x & 0xffffff) / 8388608.0f - 1.0f;
}

inline float initial(std::uint32_t p, std::uint64_t i) { return noise(1, p, i); }
inline float gradientOf(int step, int micro, std::uint32_t p, std::uint64_t i) {
  return 0.1f * noise(static_cast<std::uint64_t>(2 + step * 1000 + micro), p, i);
}

// What all ranks have at the end.
struct Result {
  std::vector<std::vector<float>> weights;  // by parameter, as floats
  std::vector<StepOutcome> outcomes;        // by step

  bool hasBitsOf(const Result& other) const {  // NaN is not equal to itself
    return std::ranges::equal(weights, other.weights, [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    });
  }
};

class Trained {
 public:
  Trained(ShardedOptimizer& shard, const Training& run) : shard_(shard), run_(run) {}

  Status train(std::uint32_t rank) {
    if (run_.resume) {
      WEFT_TRY(run_.resume(shard_));
    } else {
      WEFT_TRY(fill());
      WEFT_TRY(shard_.start(0));
    }
    const int each = run_.microBatches / run_.ranks;
    for (int step = run_.first; step < run_.steps; ++step) {
      for (int m = 0; m < each; ++m)
        WEFT_TRY(backward(step, microOf(static_cast<int>(rank), m), m + 1 == each));
      StepOutcome outcome;
      WEFT_TRY(shard_.wait(&outcome));
      result.outcomes.push_back(outcome);
      if (run_.afterStep) WEFT_TRY(run_.afterStep(shard_, step + 1));
    }
    return collect();
  }

  Result result;

 private:
  // As shard.h wants it of reproducible steps.
  int microOf(int rank, int m) const {
    const int each = run_.microBatches / run_.ranks;
    const int length = run_.config.reproducible
                           ? static_cast<int>(runLengthOf(static_cast<std::uint64_t>(each)))
                           : each;
    return (m / length * run_.ranks + rank) * length + m % length;
  }

  std::size_t size() const { return reduce::sizeOf(run_.config.paramType); }

  Status fill() {
    for (std::uint32_t p = 0; p < shard_.layout().parameters().size(); ++p) {
      const auto& slot = shard_.layout().slot(p);
      std::vector<float> values(slot.elements);
      for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = initial(slot.parameter, i);
      reduce::castFloats(run_.config.paramType, shard_.state().parameter(p), values.data(),
                         values.size(), {}, 0);
    }
    return {};
  }

  Status backward(int step, int micro, bool boundary) {
    MicroStepArgs args;
    args.boundary = boundary;
    args.learningRate = 0.01;
    args.weightDecay = run_.weightDecay;
    args.clipNorm = run_.clipNorm;
    args.divisor = run_.microBatches;
    args.microSteps = static_cast<std::uint32_t>(run_.microBatches / run_.ranks);
    args.skipNonFinite = !run_.config.eager;
    WEFT_TRY(shard_.begin(args));
    if (run_.inBackward) run_.inBackward(shard_);
    for (std::uint32_t p = static_cast<std::uint32_t>(shard_.layout().parameters().size());
         p-- > 0;) {
      const auto& spec = shard_.layout().parameters()[p];
      if (spec.frozen || spec.tiedTo >= 0) continue;
      add(step, micro, p);
      WEFT_TRY(shard_.ready(p));
    }
    return shard_.done();
  }

  // As backward does: adds to what is there.
  void add(int step, int micro, std::uint32_t p) {
    const std::uint64_t n = shard_.layout().slot(p).elements;
    std::vector<float> sum(n);
    reduce::widen(run_.config.gradType, sum.data(), shard_.state().gradient(p), n);
    for (std::uint64_t i = 0; i < n; ++i) sum[i] += gradientOf(step, micro, p, i);
    reduce::castFloats(run_.config.gradType, shard_.state().gradient(p), sum.data(), n, {}, 0);
  }

  Status collect() {
    for (std::uint32_t b = 0; b < shard_.state().buckets(); ++b) WEFT_TRY(shard_.acquire(b));
    for (std::uint32_t p = 0; p < shard_.layout().parameters().size(); ++p) {
      std::vector<float> values(shard_.layout().slot(p).elements);
      reduce::widen(run_.config.paramType, values.data(), shard_.state().parameter(p),
                    values.size());
      result.weights.push_back(values);
    }
    return {};
  }

  ShardedOptimizer& shard_;
  const Training& run_;
};

// Trains as all ranks; they must agree on everything.
inline Result trainAll(const Training& run, Status* failed = nullptr) {
  comm::CommConfig config;
  config.timeoutMs = 60000;
  config.transport = run.transport;
  config.threads = run.threads;
  config.pool = run.pool;
  std::vector<std::shared_ptr<comm::Communicator>> comms;
  const auto n = static_cast<std::size_t>(run.ranks);
  Status status = comm::createAll(run.ranks, config, &comms);
  std::vector<Result> results(n);
  if (status.ok())
    status = onThreads(n, [&](std::size_t r) -> Status {
      std::unique_ptr<ShardedOptimizer> shard;
      WEFT_TRY(ShardedOptimizer::create(*comms[r], run.config,
                                        run.model.empty() ? smallModel() : run.model, &shard));
      Trained trained(*shard, run);
      WEFT_TRY(trained.train(static_cast<std::uint32_t>(r)));
      results[r] = std::move(trained.result);
      return {};
    });
  if (failed != nullptr)
    *failed = status;
  else
    EXPECT_TRUE(status.ok()) << status.text();
  for (std::size_t r = 1; r < n && status.ok(); ++r)
    EXPECT_TRUE(results[r].hasBitsOf(results[0])) << "rank " << r << " has other weights";
  return results[0];
}

// The same without weft, one parameter after another in double.
class SerialTrainer {
 public:
  explicit SerialTrainer(const Training& run) : run_(run), tensors_(model_.size()) {
    for (std::uint32_t p = 0; p < model_.size(); ++p) {
      Tensor& t = tensors_[p];
      for (std::uint64_t i = 0; i < model_[p].elements; ++i) t.w.push_back(initial(sourceOf(p), i));
      t.m.assign(t.w.size(), 0);
      t.v = t.g = t.m;
    }
  }

  Result train() {
    Result result;
    for (int step = 0; step < run_.steps; ++step) {
      StepOutcome outcome;
      outcome.gradientNorm = std::sqrt(average(step));
      if (run_.clipNorm > 0 && outcome.gradientNorm > run_.clipNorm)
        outcome.clip = run_.clipNorm / outcome.gradientNorm;
      result.outcomes.push_back(outcome);
      for (std::uint32_t p = 0; p < model_.size(); ++p)
        if (isTrained(p)) update(p, step, outcome.clip);
    }
    for (std::uint32_t p = 0; p < model_.size(); ++p) {
      const Tensor& t = tensors_[sourceOf(p)];
      result.weights.emplace_back(t.w.begin(), t.w.end());
    }
    return result;
  }

 private:
  struct Tensor {
    std::vector<double> w, m, v, g;
  };

  bool isTrained(std::uint32_t p) const { return !model_[p].frozen && model_[p].tiedTo < 0; }
  std::uint32_t sourceOf(std::uint32_t p) const {
    return model_[p].tiedTo < 0 ? p : static_cast<std::uint32_t>(model_[p].tiedTo);
  }

  // Fills in the gradients; the sum of their squares.
  double average(int step) {
    double squares = 0;
    for (std::uint32_t p = 0; p < model_.size(); ++p) {
      for (std::uint64_t i = 0; isTrained(p) && i < model_[p].elements; ++i) {
        double g = 0;
        for (int micro = 0; micro < run_.microBatches; ++micro) g += gradientOf(step, micro, p, i);
        tensors_[p].g[i] = g / run_.microBatches;
        squares += tensors_[p].g[i] * tensors_[p].g[i];
      }
    }
    return squares;
  }

  // What is to be subtracted, but for the learning rate; for LANS the gradient's part beside it.
  double direction(Tensor& t, std::size_t i, int step, double g, double decay,
                   double* ofGradient) const {
    const OptimizerSettings& o = run_.config.optimizer;
    if (o.kind == Optimizer::Sgd) {
      const double d = g + decay * t.w[i];
      return t.m[i] = step == 0 ? d : o.momentum * t.m[i] + d;
    }
    t.m[i] = o.beta1 * t.m[i] + (1 - o.beta1) * g;
    t.v[i] = o.beta2 * t.v[i] + (1 - o.beta2) * g * g;
    const double mean = t.m[i] / (1 - std::pow(o.beta1, step + 1));
    const double variance = t.v[i] / (1 - std::pow(o.beta2, step + 1));
    *ofGradient = g / (std::sqrt(variance) + o.epsilon) + decay * t.w[i];
    return mean / (std::sqrt(variance) + o.epsilon) + decay * t.w[i];
  }

  static double normOf(const std::vector<double>& all) {
    double squares = 0;
    for (const double x : all) squares += x * x;
    return std::sqrt(squares);
  }

  void update(std::uint32_t p, int step, double clip) {
    const OptimizerSettings& o = run_.config.optimizer;
    Tensor& t = tensors_[p];
    const bool isLans = o.kind == Optimizer::Lans;
    const double decay = model_[p].noDecay ? 0 : run_.weightDecay,
                 scale = isLans ? clip / (normOf(t.g) * clip + o.epsilon) : clip;
    std::vector<double> change(t.w.size()), ofGradient(t.w.size());
    for (std::size_t i = 0; i < t.w.size(); ++i)
      change[i] = direction(t, i, step, t.g[i] * scale, decay, &ofGradient[i]);
    double ratio = 1, gradientRatio = 0;
    if (isLans || (o.kind == Optimizer::Lamb && decay != 0)) ratio = normOf(t.w) / normOf(change);
    if (isLans) {
      gradientRatio = (1 - o.beta1) * normOf(t.w) / normOf(ofGradient);
      ratio *= o.beta1;
    }
    for (std::size_t i = 0; i < t.w.size(); ++i)
      t.w[i] -= 0.01 * (ratio * change[i] + gradientRatio * ofGradient[i]);
  }

  const Training& run_;
  const std::vector<ParameterSpec> model_ = smallModel();
  std::vector<Tensor> tensors_;
};

inline Result trainSerially(const Training& run) { return SerialTrainer(run).train(); }

inline double farthest(const Result& a, const Result& b) {
  double most = 0;
  for (std::size_t p = 0; p < a.weights.size(); ++p)
    for (std::size_t i = 0; i < a.weights[p].size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(a.weights[p][i]) - b.weights[p][i]));
  return most;
}

inline double meanDistance(const Result& a, const Result& b) {
  double sum = 0, count = 0;
  for (std::size_t p = 0; p < a.weights.size(); ++p)
    for (std::size_t i = 0; i < a.weights[p].size(); ++i, ++count)
      sum += std::abs(static_cast<double>(a.weights[p][i]) - b.weights[p][i]);
  return sum / count;
}

}  // namespace weft::test
