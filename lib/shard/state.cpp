// SPDX-License-Identifier: Apache-2.0
#include "shard/state.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace weft::shard {

Status ShardState::make(const ShardConfig& config, const Mesh& mesh, Layout layout,
                        ShardState* out) {
  ShardState made;
  made.config_ = config;
  made.mesh_ = &mesh;
  made.layout_ = std::move(layout);
  WEFT_TRY(made.allocate());
  *out = std::move(made);
  return {};
}

Status ShardState::allocate() {
  using enum ShardMemory::Kind;
  const auto& [param, grad, state] = config_.degrees;
  const std::uint64_t all = layout_.bucketedElements();
  const std::size_t paramSize = reduce::sizeOf(config_.paramType);
  std::uint64_t longest = 0;
  for (const Layout::Bucket& b : layout_.buckets()) longest = std::max(longest, b.elements);
  WEFT_TRY(ShardMemory::make(Shared, layout_.flatElements() * paramSize, "parameters", &params_));
  WEFT_TRY(ShardMemory::make(Shared, all * reduce::sizeOf(config_.gradType), "gradients", &grads_));
  if (config_.gradType != config_.wireType)
    WEFT_TRY(
        ShardMemory::make(Shared, longest * reduce::sizeOf(config_.wireType), "a bucket", &wire_));
  if (param > 1 && grad > param)
    WEFT_TRY(ShardMemory::make(Shared, longest / param * sizeof(float), "a bucket", &between_));
  if (param > 1)
    WEFT_TRY(ShardMemory::make(Shared, all / param * paramSize, "sharded parameters", &kept_));
  if (!config_.eager)
    WEFT_TRY(ShardMemory::make(Shared, all / (grad > 1 ? grad : state) * sizeof(float),
                               "reduced gradients", &sums_));
  if (!aliasesWeights())
    WEFT_TRY(ShardMemory::make(Private, all / state * sizeof(float), "fp32 weights", &weights_));
  for (const std::string& name : stateNames(config_.optimizer)) {
    state_.emplace_back();
    WEFT_TRY(ShardMemory::make(Private, all / state * sizeof(float), name.c_str(), &state_.back()));
  }
  return {};
}

std::byte* ShardState::parameter(std::uint32_t i) const {
  return params_.data() + layout_.slot(i).offset * reduce::sizeOf(config_.paramType);
}

std::byte* ShardState::gradient(std::uint32_t i) const {
  const Layout::Slot& s = layout_.slot(i);
  if (s.bucket == Layout::kNoBucket) return nullptr;
  return grads_.data() + s.offset * reduce::sizeOf(config_.gradType);
}

std::byte* ShardState::parameters(std::uint32_t bucket) const {
  return params_.data() + layout_.buckets()[bucket].offset * reduce::sizeOf(config_.paramType);
}

std::byte* ShardState::gradients(std::uint32_t bucket) const {
  return grads_.data() + layout_.buckets()[bucket].offset * reduce::sizeOf(config_.gradType);
}

void ShardState::clearGradients(std::uint32_t bucket) {
  const Layout::Bucket& b = layout_.buckets()[bucket];
  const std::size_t size = reduce::sizeOf(config_.gradType);
  const auto clear = config_.degrees.grad > 1 ? &ShardMemory::drop : &ShardMemory::zero;
  (grads_.*clear)(b.offset * size, b.elements * size);
}

void ShardState::dropParameters(std::uint32_t bucket) {
  const Layout::Bucket& b = layout_.buckets()[bucket];
  const std::size_t size = reduce::sizeOf(config_.paramType);
  params_.drop(b.offset * size, b.elements * size);
}

ShardState::Range ShardState::part(std::uint32_t bucket, Level level) const {
  const Layout::Bucket& b = layout_.buckets()[bucket];
  const Mesh::Part part = mesh_->part(b.elements, level);
  return {b.offset + part.offset, part.elements};
}

std::byte* ShardState::keptParameters(std::uint32_t bucket) const {
  if (config_.degrees.param == 1) return parameters(bucket);
  const std::uint64_t at = layout_.buckets()[bucket].offset / config_.degrees.param;
  return kept_.data() + at * reduce::sizeOf(config_.paramType);
}

float* ShardState::sums(std::uint32_t bucket) const {
  const Degrees& d = config_.degrees;
  return sums_.as<float>().data() +
         layout_.buckets()[bucket].offset / (d.grad > 1 ? d.grad : d.state);
}

float* ShardState::finalSums(std::uint32_t bucket) const {
  if (config_.degrees.grad == 1) return sums(bucket);
  return sums(bucket) + (part(bucket, Level::State).offset - part(bucket, Level::Grad).offset);
}

StateRun ShardState::runOf(const Layout::Piece& piece, std::uint64_t inState, float* gradients,
                           std::byte* result, std::byte* kept) const {
  StateRun run;
  run.parameter = piece.parameter;
  run.from = piece.from;
  run.gradients = gradients;
  run.slice.first = layout_.slot(piece.parameter).first + piece.from;
  run.slice.n = piece.elements;
  run.slice.gradients = gradients;
  run.slice.weights = kept;
  run.slice.weightType = config_.paramType;
  if (!aliasesWeights()) {
    run.slice.weights = weights_.as<float>().data() + inState;
    run.slice.weightType = reduce::DType::F32;
  }
  if (result != nullptr && result != run.slice.weights) run.slice.out = result;
  run.slice.outType = config_.paramType;
  run.slice.rounding = {config_.rounding, config_.seed, static_cast<std::uint64_t>(steps)};
  for (std::size_t k = 0; k < state_.size(); ++k)
    run.state[k] = state_[k].as<float>().data() + inState;
  const bool decays = !layout_.parameters()[piece.parameter].noDecay;
  run.weightDecay = decays ? weightDecay : 0;
  return run;
}

std::vector<std::string> ShardState::arrayNames() const {
  std::vector<std::string> names = stateNames(config_.optimizer);
  names.insert(names.begin(), "weight");
  return names;
}

void ShardState::adopt() {
  for (std::uint32_t b = 0; b < buckets(); ++b) {
    const Range home = part(b, Level::Param);
    const std::size_t size = reduce::sizeOf(config_.paramType);
    const std::uint64_t start = layout_.buckets()[b].offset;
    if (config_.degrees.param > 1)
      std::memcpy(keptParameters(b), parameters(b) + (home.offset - start) * size,
                  home.elements * size);
    if (aliasesWeights()) continue;
    visitOwn(b, [&](const StateRun& run) {
      reduce::widen(config_.paramType, static_cast<float*>(run.slice.weights),
                    parameter(run.parameter) + run.from * size, run.slice.n);
    });
  }
}

void ShardState::setWeights(std::uint32_t parameter, const float* weights) const {
  const std::uint32_t bucket = layout_.slot(parameter).bucket;
  if (aliasesWeights() || bucket == Layout::kNoBucket) return;
  visitOwn(bucket, [&](const StateRun& run) {
    if (run.parameter == parameter)
      std::copy_n(weights + run.from, run.slice.n, static_cast<float*>(run.slice.weights));
  });
}

void ShardState::roundWeights(std::uint32_t bucket, std::byte* result) const {
  const auto round = [](const StateRun& run) {
    const reduce::StepSlice& s = run.slice;
    if (s.out != nullptr)
      reduce::castFloats(s.outType, s.out, static_cast<const float*>(s.weights), s.n, s.rounding,
                         s.first);
  };
  visitOwn(bucket, round, nullptr, result);
}

std::uint64_t ShardState::checkpointBytes() const {
  return layout_.logicalElements() * sizeof(float) * (state_.size() + 1);
}

std::uint64_t ShardState::bytes() const {
  const std::uint64_t transient = config_.degrees.param > 1 ? params_.bytes() : 0;
  std::uint64_t sum = params_.bytes() - transient + wire_.bytes() + between_.bytes() +
                      kept_.bytes() + sums_.bytes() + weights_.bytes();
  if (config_.degrees.grad == 1) sum += grads_.bytes();
  for (const ShardMemory& array : state_) sum += array.bytes();
  return sum;
}

}  // namespace weft::shard
