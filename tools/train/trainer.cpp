// SPDX-License-Identifier: Apache-2.0
#include "tools/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tools/train/agreement.h"
#include "tools/train/fingerprint.h"

namespace weft::train {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

size_t samplesPerStep(const Options& options, const Communicator& team) {
  return static_cast<size_t>(options.batch * options.accumulate * team.size());
}

FlatLayout layoutOf(const std::vector<Parameter>& parameters, double bucketMb) {
  std::vector<size_t> sizes;
  for (const Parameter& parameter : parameters) sizes.push_back(parameter.size());
  return {sizes, static_cast<size_t>(std::max(bucketMb * 1e6 / sizeof(float), 1.0))};
}

std::vector<AdamWRange> rangesOf(const std::vector<Parameter>& parameters,
                                 const FlatLayout& layout) {
  std::vector<AdamWRange> ranges;
  for (size_t i = 0; i < parameters.size(); ++i) {
    ranges.push_back({layout.slot(i).offset, layout.slot(i).size, parameters[i].decay});
  }
  return ranges;
}

GptShape shapeOf(const Options& options) {
  return {options.layers, options.hidden, options.heads, options.length};
}

}  // namespace

Trainer::Trainer(const Options& options, Communicator& team, std::span<const uint8_t> text)
    : options_(options),
      team_(team),
      sampler_(text, static_cast<size_t>(options.length), samplesPerStep(options, team),
               options.seed),
      specification_(gptParameters(shapeOf(options))),
      layout_(layoutOf(specification_, options.bucketMb)),
      weights_(layout_.size()),
      gradients_(layout_.size()),
      model_(shapeOf(options), options.bf16, layout_, weights_.values(), gradients_.values()),
      optimizer_(
          {.beta1 = options.beta1, .beta2 = options.beta2, .weightDecay = options.weightDecay},
          rangesOf(specification_, layout_), layout_.size()),
      shared_(kWords * static_cast<size_t>(team.size())),
      reducer_(team, stream_, layout_, gradients_.values(),
               options.wireBf16 ? Wire::kBfloat16 : Wire::kFloat32, !options.noOverlap) {
  const std::string settings = commonSettings(options);
  agree(team, "command line", fingerprint(std::span<const char>(settings)));
  agree(team, "training text", fingerprint(text));
  shareInitialWeights();
  model_.onGradient([this](size_t parameter) { reducer_.ready(parameter); });
}

void Trainer::shareInitialWeights() {
  if (team_.rank() == 0) model_.initialize(options_.seed);
  float* weights = weights_.values().data();
  team_.broadcast(weights, weights, layout_.size());
  agree(team_, "copy of the initial weights", weightsFingerprint(), Exit::kInternal);
}

StepReport Trainer::step(bool wantStop) {
  const auto start = Clock::now();
  std::ranges::fill(gradients_.values(), 0.0f);
  accumulateGradients(wantStop);
  const auto backwardEnd = Clock::now();
  reducer_.finish();
  const double exposed = secondsSince(backwardEnd);

  const double loss = meanLoss();
  const double gradientNorm = norm(gradients_.values());
  if (!std::isfinite(gradientNorm)) {
    throw SharedFailure(Exit::kData,
                        fmt::format("the norm of the gradients is {} at step {}: try a "
                                    "smaller --lr or a longer --warmup",
                                    gradientNorm, steps_));
  }
  const double rate = learningRate(options_.learningRate, steps_, options_.warmup, options_.steps);
  const bool clipped = options_.clip > 0 && gradientNorm > options_.clip;
  optimizer_.step(weights_.values(), gradients_.values(), rate,
                  clipped ? options_.clip / gradientNorm : 1.0);
  return {
      steps_++, loss, gradientNorm, rate, secondsSince(start), exposed, shared_[kWantStop] != 0};
}

// Micro-batch m of the step is samples m * R .. (m + 1) * R of R = ranks * batch, and each rank has
// its run of `batch` among them, so any split of the same global batch gives the same gradients.
void Trainer::accumulateGradients(bool wantStop) {
  const auto batch = static_cast<uint64_t>(options_.batch);
  const auto ranks = static_cast<uint64_t>(team_.size()),
             rank = static_cast<uint64_t>(team_.rank());
  std::vector<std::span<const uint8_t>> samples(batch);
  mine_ = {0.0, wantStop ? 1.0 : 0.0};
  for (int64_t micro = 0; micro < options_.accumulate; ++micro) {
    const uint64_t first = (static_cast<uint64_t>(micro) * ranks + rank) * batch;
    for (uint64_t i = 0; i < batch; ++i) {
      samples[i] = sampler_.sample(static_cast<uint64_t>(steps_), first + i);
    }
    mine_[kLoss] += model_.forward(samples) / static_cast<double>(options_.accumulate);
    if (micro + 1 == options_.accumulate) {  // the losses travel first, under backward as well
      team_.allGather(mine_.data(), shared_.data(), mine_.size(), {stream_});
      reducer_.begin();
    }
    model_.backward(1.0 / static_cast<double>(options_.accumulate));
  }
}

double Trainer::meanLoss() const {
  double sum = 0;
  const auto ranks = static_cast<size_t>(team_.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    const double loss = shared_[rank * kWords + kLoss];
    if (!std::isfinite(loss)) {
      throw SharedFailure(Exit::kData,
                          fmt::format("the loss of rank {} is {} at step {}: try a smaller "
                                      "--lr or a longer --warmup",
                                      rank, loss, steps_));
    }
    sum += loss;
  }
  return sum / static_cast<double>(ranks);
}

size_t Trainer::parameters() const {
  size_t sum = 0;
  for (const Parameter& parameter : specification_) sum += parameter.size();
  return sum;
}

uint64_t Trainer::weightsFingerprint() {
  return fingerprint(std::span<const float>(weights_.values()));
}

}  // namespace weft::train
