// SPDX-License-Identifier: Apache-2.0
#include "engine/compute.h"

#include <algorithm>
#include <cstring>

#include "reduce/reduce.h"

namespace weft {
namespace {

// Bytes at once where results go to several places: a few such tiles fit a first-level cache.
constexpr std::uint64_t kTile = 8 << 10;

void copyBytes(void* to, const void* from, std::uint64_t bytes) {
  if (to != from && bytes != 0) std::memcpy(to, from, bytes);
}

std::uint64_t divisorOf(const Plan& plan, const BoundOp& op) {
  return op.finish ? plan.divisor : 1;
}

}  // namespace

Compute::Compute(PeerBuffers& peers, std::uint32_t ranks) : peers_(peers), sources_(ranks) {
  targets_.reserve(ranks);
}

bool Compute::run(const Frame& frame, const BoundOp& op, std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (frame.plan.opening != 0 && !peers_.mapped()) return runInTiles(frame, op, bytes);
  findTargets(frame, op);
  if (op.kind == BoundOp::Kind::Fold)
    fold(frame, op, bytes);
  else
    copy(frame, op, bytes);
  return true;
}

void Compute::findTargets(const Frame& frame, const BoundOp& op) {
  targets_.assign(1, at(frame, op.dst));
  for (std::uint32_t k = 0; k < op.spread; ++k)
    targets_.push_back(at(frame, frame.plan.operands[op.firstSpread + k]));
}

void Compute::fold(const Frame& frame, const BoundOp& op, std::uint64_t bytes) {
  const Plan& plan = frame.plan;
  bool inPlace = false;  // then the target's lines are in the cache already
  for (std::uint32_t k = 0; k < op.operands; ++k) {
    sources_[k] = at(frame, plan.operands[op.first + k]);
    inPlace = inPlace || std::ranges::find(targets_, sources_[k]) != targets_.end();
  }
  if (op.finish && plan.callsKernel) return callKernel(frame, op, bytes);
  const std::size_t count = bytes / plan.elementBytes;
  if (op.stream && !inPlace && plan.spread != nullptr)
    plan.spread(targets_.data(), targets_.size(), sources_.data(), op.operands, count,
                divisorOf(plan, op));
  else if (op.spread != 0)
    spread(frame, op, nullptr, bytes);
  else
    plan.fold(targets_[0], sources_.data(), op.operands, count, divisorOf(plan, op));
}

// The kernel makes a tile where it stays in the cache, from where all targets get it.
void Compute::callKernel(const Frame& frame, const BoundOp& op, std::uint64_t bytes) {
  const Plan& plan = frame.plan;
  const std::span addends(sources_.data(), op.operands);
  auto* const result = static_cast<std::byte*>(targets_[0]);
  const bool streams = op.stream && result != nullptr;
  if (op.stream && frame.kernel->runToAll(targets_, addends, frame.shift / plan.elementBytes,
                                          bytes / plan.elementBytes))
    return;
  if (streams) tile_.resize(kKernelTile);
  for (std::uint64_t done = 0; done < bytes; done += kKernelTile) {
    const std::uint64_t n = std::min<std::uint64_t>(kKernelTile, bytes - done);
    std::byte* const made = streams ? tile_.data() : result == nullptr ? nullptr : result + done;
    frame.kernel->run(made, addends, (frame.shift + done) / plan.elementBytes,
                      n / plan.elementBytes);
    if (streams) copyStream(targets_.data(), targets_.size(), made, n);
    for (void*& target : targets_) {
      if (!streams && target != made) copyBytes(target, made, n);
      if (target != nullptr) target = static_cast<std::byte*>(target) + n;
    }
    for (std::uint32_t k = 0; k < op.operands; ++k) {
      if (sources_[k] != nullptr) sources_[k] = static_cast<const std::byte*>(sources_[k]) + n;
    }
  }
}

// Copy, Store, Scale, Finish.
void Compute::copy(const Frame& frame, const BoundOp& op, std::uint64_t bytes) {
  const Plan& plan = frame.plan;
  const std::byte* src = at(frame, op.src);
  const std::size_t count = bytes / plan.elementBytes;
  if (op.kind == BoundOp::Kind::Scale) return plan.scale(targets_[0], src, count, frame.scalar);
  if (op.stream)
    copyStream(targets_.data(), targets_.size(), src, bytes);
  else if (op.spread != 0)
    spread(frame, op, src, bytes);
  else
    copyBytes(targets_[0], src, bytes);
  if (op.kind == BoundOp::Kind::Finish) finish(plan.type, targets_[0], count, plan.divisor);
}

// Copies `src`, or adds the sources if it is null, tile by tile; each tile is stored to all targets
// while it is in the first-level cache.
void Compute::spread(const Frame& frame, const BoundOp& op, const std::byte* src,
                     std::uint64_t bytes) {
  const Plan& plan = frame.plan;
  auto* const first = static_cast<std::byte*>(targets_[0]);
  for (std::uint64_t done = 0; done < bytes; done += kTile) {
    const std::uint64_t n = std::min(kTile, bytes - done);
    const std::byte* const made = (src == nullptr ? first : src) + done;
    if (src == nullptr) {
      plan.fold(first + done, sources_.data(), op.operands, n / plan.elementBytes,
                divisorOf(plan, op));
      for (std::uint32_t k = 0; k < op.operands; ++k)
        sources_[k] = static_cast<const std::byte*>(sources_[k]) + n;
    }
    for (void* target : targets_) copyBytes(static_cast<std::byte*>(target) + done, made, n);
  }
}

// The same where some buffer is reached through the kernel.
bool Compute::runInTiles(const Frame& frame, const BoundOp& op, std::uint64_t bytes) {
  for (std::uint64_t from = 0; from < bytes; from += kKernelTile) {
    const std::size_t n = std::min<std::uint64_t>(kKernelTile, bytes - from);
    const std::byte* made = makeTile(frame, op, from, n);
    if (made == nullptr || !store(frame, op.dst, from, made, n)) return false;
    for (std::uint32_t k = 0; k < op.spread; ++k) {
      if (!store(frame, frame.plan.operands[op.firstSpread + k], from, made, n)) return false;
    }
  }
  return true;
}

const std::byte* Compute::makeTile(const Frame& frame, const BoundOp& op, std::uint64_t from,
                                   std::size_t bytes) {
  if (op.kind != BoundOp::Kind::Fold) return load(frame, op.src, from, bytes, 0);
  const Plan& plan = frame.plan;
  for (std::uint32_t k = 0; k < op.operands; ++k) {
    sources_[k] = load(frame, plan.operands[op.first + k], from, bytes, k);
    if (sources_[k] == nullptr) return nullptr;
  }
  void* const made = at(frame, op.dst) + from;
  const std::size_t count = bytes / plan.elementBytes;
  const std::uint64_t divisor = divisorOf(plan, op);
  if (op.stream && op.spread == 0 && plan.spread != nullptr)  // nobody reads it at once
    plan.spread(&made, 1, sources_.data(), op.operands, count, divisor);
  else
    plan.fold(made, sources_.data(), op.operands, count, divisor);
  return static_cast<std::byte*>(made);
}

const std::byte* Compute::load(const Frame& frame, const Place& place, std::uint64_t from,
                               std::size_t bytes, std::uint32_t slot) {
  return isPeers(place) ? peers_.load(place, from, bytes, slot) : at(frame, place) + from;
}

bool Compute::store(const Frame& frame, const Place& place, std::uint64_t from,
                    const std::byte* src, std::size_t bytes) {
  if (isPeers(place)) return peers_.store(place, from, src, bytes);
  copyBytes(at(frame, place) + from, src, bytes);
  return true;
}

}  // namespace weft
