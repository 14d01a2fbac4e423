// SPDX-License-Identifier: Apache-2.0
// The weights that a trainer begins with, and whether those of all ranks are alike.
#include <fmt/format.h>

#include <map>
#include <span>
#include <vector>

#include "tools/train/agreement.h"
#include "tools/train/fingerprint.h"
#include "tools/train/trainer.h"
#include "tools/train/weights/initial_weights.h"

namespace weft::train {
namespace {

bool hasMasters(const Options& options) {
  return options.params == Params::kBfloat16 || options.params == Params::kFloat16;
}

size_t elementBytes(const Options& options) {
  return options.params == Params::kFloat32 ? sizeof(float) : sizeof(uint16_t);
}

}  // namespace

// In fp32, one parameter after the other: this rank's part of those of a file, or of drawn ones.
void Trainer::visitInitialWeights(const std::function<void(size_t, const float*)>& take) const {
  const auto takePart = [&](size_t i, const float* whole) {
    const Parameter& of = whole_.list[own_.inWhole[i]];
    take(i, partOf(of, groups_.part().tensor, whole).data());
  };
  if (options_.initFrom.empty()) return model_.draw(options_.seed, takePart);
  const InitialWeights stored(options_.initFrom, options_.shape);
  const auto isStored = [&](size_t i) { return stored.has(own_.inWhole[i]); };
  std::map<size_t, std::vector<float>> drawn;  // a new head
  model_.draw(options_.seed, [&](size_t i, const float* whole) {
    if (!isStored(i)) drawn[i].assign(whole, whole + whole_.list[own_.inWhole[i]].size());
  });
  for (size_t i = 0; i < own_.list.size(); ++i)
    takePart(i, isStored(i) ? stored.of(own_.inWhole[i]).data() : drawn[i].data());
}

void Trainer::shareInitialWeights() {
  if (groups_.data().rank() == 0)
    visitInitialWeights([this](size_t i, const float* weights) { model_.set(i, weights); });
  check(weftShardStart(shard_, 0));
  weightsFingerprint("initial weights");
  if (hasMasters(options_)) shareFp32Weights();
}

// What the optimizer steps begins with the draw itself, not with what its rounding has left.
void Trainer::shareFp32Weights() {
  std::vector<float> weights;
  const auto share = [&](size_t parameter, const float* drawn) {
    weights.resize(own_.list[parameter].size());
    groups_.data().broadcast(drawn, weights.data(), weights.size());
    check(weftShardSetWeights(shard_, parameter, weights.data()));
  };
  if (groups_.data().rank() == 0) return visitInitialWeights(share);
  for (size_t i = 0; i < own_.list.size(); ++i) share(i, nullptr);
}

uint64_t Trainer::fingerprintOf(size_t parameter) const {
  const auto* bytes = static_cast<const uint8_t*>(shard_.memoryOf(parameter).weights);
  return fingerprint(std::span(bytes, own_.list[parameter].size() * elementBytes(options_)));
}

uint64_t Trainer::fingerprintOfOwn(bool copiesAlone) {
  uint64_t all = 0;
  for (size_t i = 0; i < own_.list.size(); ++i) {
    if (copiesAlone && own_.list[i].split != Split{}) continue;
    const uint64_t words[2] = {all, fingerprintOf(i)};
    all = fingerprint(std::span<const uint64_t>(words));
  }
  return all;
}

uint64_t Trainer::weightsFingerprint(const std::string& which) {
  shard_.acquireAll();
  const uint64_t own = fingerprintOfOwn(false);
  agree(all_, "copy of the " + which, own, Exit::kInternal, groups_.firstOfPart());
  if (groups_.parts() == nullptr) return own;
  agreeOnCopies(which);
  std::vector<uint64_t> parts(static_cast<size_t>(groups_.part().count()));
  groups_.parts()->allGather(&own, parts.data(), 1);
  return fingerprint(std::span<const uint64_t>(parts));
}

// What is in several parts of the model, and was stepped in each.
void Trainer::agreeOnCopies(const std::string& which) {
  agree(all_, fmt::format("copy of the norms and biases among the {}", which),
        fingerprintOfOwn(true), Exit::kInternal, groups_.firstOfStage());
  if (whole_.firstLayer != FirstLayer::kIsFirstAndLast || groups_.part().stage.count == 1) return;
  const uint64_t tied = tied_ ? fingerprintOf(0) : 0;
  agree(all_, fmt::format("copy of the tied embedding among the {}", which), tied, Exit::kInternal,
        groups_.firstOfPartOrEnd());
}

}  // namespace weft::train
