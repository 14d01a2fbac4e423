// SPDX-License-Identifier: Apache-2.0
#include "sides.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>

namespace weft::bench {
namespace {

constexpr std::size_t kTile = 4096;  // elements that an optimizer without passes widens at once

}  // namespace

Shard::Shard(Communicator& comm, double millions, std::size_t bucketElements, bool eager)
    : eager_(eager) {
  // Tensors of a transformer's size: 1 Mi and 4 Mi elements, and a rest.
  std::vector<std::size_t> sizes;
  for (auto left = static_cast<std::size_t>(millions * 1e6); left != 0; left -= sizes.back())
    sizes.push_back(std::min(left, std::size_t{sizes.size() % 3 == 2 ? 4u : 1u} << 20));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sizes.size(); ++i) names.push_back(fmt::format("tensor{}", i));
  std::vector<weftParam_t> params;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    params.push_back({names[i].c_str(), sizes[i], 0, -1, nullptr, 0});
  weftShardConfig_t config = WEFT_SHARD_CONFIG_INITIALIZER;
  config.eager = eager;
  config.bucketElements = bucketElements;
  check(weftShardCreate(&shard_, comm, params.data(), params.size(), &config));
  check(weftShardStart(shard_, -1));
  findBuckets(params.size());
}

// Buckets lie one after another, from the last parameter on.
void Shard::findBuckets(std::size_t parameters) {
  buckets_.resize(static_cast<std::size_t>(info().buckets));
  for (std::size_t i = parameters; i-- > 0;) {
    void *weights = nullptr, *gradient = nullptr;
    int bucket = 0;
    check(weftShardBuffers(shard_, i, &weights, &gradient));
    check(weftShardBucket(shard_, i, &bucket));
    if (gradients_ == nullptr) {
      weights_ = static_cast<std::uint16_t*>(weights);
      gradients_ = static_cast<std::uint16_t*>(gradient);
    }
    Bucket& b = buckets_[static_cast<std::size_t>(bucket)];
    if (b.parameters.empty())
      b.offset = static_cast<std::size_t>(static_cast<std::uint16_t*>(gradient) - gradients_);
    b.parameters.push_back(i);
  }
  std::size_t end = elements();
  for (std::size_t b = buckets_.size(); b-- > 0; end = buckets_[b].offset)
    buckets_[b].elements = end - buckets_[b].offset;
}

weftShardInfo_t Shard::info() const {
  weftShardInfo_t info{};
  info.size = sizeof(info);
  check(weftShardInfo(shard_, &info));
  return info;
}

void Shard::begin(bool clip) {
  weftStepArgs_t args = WEFT_STEP_ARGS_INITIALIZER;
  args.clipNorm = clip ? 1.0 : 0.0;
  args.skipNonFinite = eager_ ? 0 : 1;
  check(weftStepBegin(shard_, &args));
}

void Shard::ready(const Bucket& bucket) {
  for (const std::size_t parameter : bucket.parameters) check(weftGradReady(shard_, parameter));
}

void Shard::done() { check(weftGradDone(shard_)); }

void Shard::waitForFirst() { check(weftParamWait(shard_, static_cast<int>(buckets_.size()) - 1)); }

void Shard::wait() { check(weftStepWait(shard_, nullptr)); }

Array::Array(std::size_t elements) : bytes_(elements * sizeof(float)) {
  void* const memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes_, MADV_HUGEPAGE);
  data_ = static_cast<float*>(memory);
}

Array::~Array() { ::munmap(data_, bytes_); }

Separate::Separate(Communicator& comm, const Shard& shard)
    : comm_(comm),
      shard_(shard),
      own_(shard.ownElements()),
      master_(own_),
      m_(own_),
      v_(own_),
      sums_(own_) {
  check(weftMemAlloc(&wire_, own_ * 2));
}

void Separate::step(How how) {
  check(weftReduceScatter(shard_.gradients(), wire_, own_, weftBfloat16, weftAvg, comm_, nullptr,
                          nullptr),
        comm_);
  optimize(how);
  check(weftAllGather(wire_, shard_.weights(), own_, weftBfloat16, comm_, nullptr, nullptr), comm_);
}

void Separate::reduce(const Shard::Bucket& b) {
  const auto ranks = static_cast<std::size_t>(comm_.size());
  auto* const to = static_cast<std::uint16_t*>(wire_) + b.offset / ranks;
  check(weftReduceScatter(shard_.gradients() + b.offset, to, b.elements / ranks, weftBfloat16,
                          weftAvg, comm_, stream_, nullptr),
        comm_);
}

void Separate::update(How how) {
  const auto ranks = static_cast<std::size_t>(comm_.size());
  stream_.synchronize();
  optimize(how);
  Event first;
  for (std::size_t i = shard_.buckets().size(); i-- > 0;) {
    const Shard::Bucket& b = shard_.buckets()[i];
    const auto* const from = static_cast<const std::uint16_t*>(wire_) + b.offset / ranks;
    check(weftAllGather(from, shard_.weights() + b.offset, b.elements / ranks, weftBfloat16, comm_,
                        stream_, nullptr),
          comm_);
    if (i + 1 == shard_.buckets().size()) first.record(stream_);
  }
  first.synchronize();
}

// Keeps the widened sums, or does not.
double Separate::clipScale(bool keep) {
  reduce::GradientStats stats;
  for (std::size_t at = 0; at < own_; at += kTile) {
    const std::size_t n = std::min(kTile, own_ - at);
    const reduce::Addend sums{static_cast<std::uint16_t*>(wire_) + at, reduce::DType::BF16};
    reduce::foldGradients(sums_.data() + (keep ? at : 0), {&sums, 1}, 1, false, n, at, &stats);
  }
  double squares = stats.squares.value();
  check(weftAllReduce(&squares, &squares, 1, weftFloat64, weftSum, comm_, nullptr, nullptr), comm_);
  return squares > 1 ? 1 / std::sqrt(squares) : 1;
}

void Separate::optimize(How how) {
  const bool passes = how.optimizer == Optimizer::Passes;
  reduce::AdamW settings;
  settings.step = ++steps_;
  if (how.clip)
    settings.gradientScale = clipScale(passes);
  else if (passes)
    reduce::widen(reduce::DType::BF16, sums_.data(), wire_, own_);
  passes ? stepInPasses(settings) : stepInTiles(settings);
}

void Separate::stepInTiles(const reduce::AdamW& settings) {
  for (std::size_t at = 0; at < own_; at += kTile) {
    reduce::StepSlice slice;
    slice.n = std::min(kTile, own_ - at);
    slice.weights = master_.data() + at;
    slice.gradients = sums_.data();
    slice.out = static_cast<std::uint16_t*>(wire_) + at;
    reduce::widen(reduce::DType::BF16, sums_.data(), slice.out, slice.n);
    reduce::stepAdamW(settings, slice, m_.data() + at, v_.data() + at);
  }
}

void Separate::stepInPasses(const reduce::AdamW& settings) {
  reduce::StepSlice slice;
  slice.n = own_;
  slice.weights = master_.data();
  slice.gradients = sums_.data();
  reduce::stepAdamW(settings, slice, m_.data(), v_.data());
  reduce::castFloats(reduce::DType::BF16, wire_, master_.data(), own_, {}, 0);
}

}  // namespace weft::bench
