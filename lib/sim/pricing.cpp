// SPDX-License-Identifier: Apache-2.0
#include "sim/pricing.h"

#include <algorithm>
#include <array>

#include "transports/window.h"

namespace weft::sim {
namespace {

using plan::Base;
using plan::BoundOp;
using Kind = BoundOp::Kind;

bool isStaging(Base base) {
  return base == Base::Arena || base == Base::Arrivals || base == Base::Ring ||
         base == Base::Published;
}

}  // namespace

Pricing::Pricing(const plan::Plan& plan, std::uint32_t rank, const Job& job, const Network& network,
                 double messageNs)
    : plan_(plan),
      rank_(rank),
      groups_(job.groups),
      member_(groups_.positionOf(rank)),
      costs_(*job.costs),
      machine_(costs_.machine),
      network_(network),
      messageNs_(messageNs),
      copies_(plan.cmaCopies && !job.sharesBuffers),
      resultsAreRead_(job.resultsAreRead) {
  const std::uint32_t ranks = groups_.size == 0 ? network.ranks() : groups_.size;
  const double share = plan::shareOf(ranks, costs_);
  across_ = plan::acrossOf(ranks, costs_);
  const auto buffers = static_cast<double>(bufferBytes());
  const auto staging = static_cast<double>(stagingBytes());
  footprint_ = plan::crowded(share * (buffers + staging), ranks, costs_);
  user_ = plan::MemoryCosts(machine_, footprint_, across_);
  staged_ = plan::MemoryCosts(machine_, plan::crowded(share * staging, ranks, costs_), across_);
  near_ = plan::MemoryCosts(machine_, 0, across_);
  pastCaches_ = bufferBytes() >= plan::streamMin(ranks, costs_);
}

// How far the ops reach into In and Out.
std::uint64_t Pricing::bufferBytes() const {
  std::array<std::uint64_t, 2> ends{};
  const auto reach = [&](const plan::Place& place, const BoundOp& op) {
    if (place.base != Base::In && place.base != Base::Out) return;
    std::uint64_t& end = ends[static_cast<std::size_t>(place.base)];
    const std::uint64_t all = (plan_.segments - 1) * plan_.segmentBytes + op.max;
    end = std::max(end, place.offset + std::min(op.limit, all));
  };
  for (const BoundOp& op : plan_.ops) {
    if (op.kind == Kind::Wait || op.kind == Kind::Signal || op.kind == Kind::Raise) continue;
    if (op.kind != Kind::Fold) reach(op.src, op);
    if (op.kind != Kind::Put && op.kind != Kind::PutInline && op.kind != Kind::PutDirect)
      reach(op.dst, op);
    for (std::uint32_t k = 0; k < op.operands; ++k) reach(plan_.operands[op.first + k], op);
  }
  return ends[0] + ends[1];
}

// What the lanes in flight read of staging memory, and write to that of peers, or for them.
std::uint64_t Pricing::stagingBytes() const {
  std::uint64_t bytes = 0;
  for (const BoundOp& op : plan_.ops) {
    if (op.kind == Kind::Put || op.kind == Kind::Publish) bytes += op.max;
    if (op.kind != Kind::Fold && op.kind != Kind::Wait && isStaging(op.src.base)) bytes += op.max;
    for (std::uint32_t k = 0; k < op.operands; ++k)
      if (isStaging(plan_.operands[op.first + k].base)) bytes += op.max;
  }
  return bytes * std::min<std::uint64_t>(plan_.segments, transport::kMaxLanes);
}

double Pricing::loadNs(const plan::Place& place) const {
  const bool isFar = place.isPeers() && costs_.isFar(member_, place.peer);
  if (isStaging(place.base)) return staged_.take + (isFar ? staged_.furtherTake : 0);
  if (!place.isPeers()) return user_.load;
  if (copies_)  // into a tile, which is in the nearest cache then
    return machine_.cmaTake.nsPerByte(footprint_) + machine_.cmaCallNs / plan::kTileBytes +
           near_.store + near_.load - user_.store;
  return user_.take + (isFar ? user_.furtherTake : 0);
}

double Pricing::storeNs(const BoundOp& op, double loadNs) const {
  if (op.kind == Kind::Publish) return staged_.publish;  // peers have read it last
  if (isStaging(op.dst.base)) return staged_.store;
  return op.stream ? user_.storePast(loadNs) : user_.store;
}

// To a peer's buffer. What nobody has read since is where it was stored from.
double Pricing::putNs() const { return resultsAreRead_ ? user_.put : user_.store; }

// A byte more for each peer that gets the result, from the nearest cache.
double Pricing::crossingNs(std::uint32_t peer) const {
  if (copies_)
    return machine_.cmaPut.nsPerByte(footprint_) + machine_.cmaCallNs / plan::kTileBytes -
           (user_.load - near_.load);
  return (pastCaches_ ? user_.streamed : near_.load + putNs()) +
         (costs_.isFar(member_, peer) ? user_.furtherPut : 0);
}

Price Pricing::of(const BoundOp& op) const {
  switch (op.kind) {
    case Kind::Wait:
      return {};
    case Kind::Put:
    case Kind::PutInline:
    case Kind::PutDirect:
    case Kind::Raise:
    case Kind::Signal:
      return message(op);
    default:
      return computed(op);
  }
}

Price Pricing::message(const BoundOp& op) const {
  if (network_.joinsByMemory(rank_, groups_.rankOf(rank_, op.peer))) return messageInMemory(op);
  return {messageNs_, 0, pastCaches_ ? 1.0 : 0};
}

// The core writes it. What does not travel with its flag is fetched after it.
Price Pricing::messageInMemory(const BoundOp& op) const {
  Price price{machine_.messageNs, 0, 0};
  if (op.kind == Kind::Signal || op.kind == Kind::Raise) return price;
  const double far = costs_.isFar(member_, op.peer) ? staged_.furtherPut : 0;
  price.memoryPerByte = pastCaches_ ? 2 : 0;
  if (op.kind == Kind::PutDirect && !costs_.oneProcess) {
    price.fixedNs += machine_.cmaCallNs;
    price.nsPerByte = machine_.cmaPut.nsPerByte(footprint_);
  } else if (op.kind == Kind::PutDirect) {
    price.nsPerByte = loadNs(op.src) + putNs() + far;
  } else {
    if (op.max > transport::kInlineBytes) price.fixedNs += machine_.exchangeNs * across_;
    price.nsPerByte = loadNs(op.src) + staged_.put + far;
  }
  return price;
}

// Of all operands of a sum, and what adding them takes. They are counted, so that their order does
// not change the last bit.
double Pricing::loadAllNs(const BoundOp& op) const {
  std::array<std::uint32_t, static_cast<std::size_t>(Base::Published) + 1> bases{};
  double far = 0;
  for (std::uint32_t k = 0; k < op.operands; ++k) {
    const plan::Place& place = plan_.operands[op.first + k];
    ++bases[static_cast<std::size_t>(place.base)];
    far += place.isPeers() && costs_.isFar(member_, place.peer) ? 1 : 0;
  }
  double ns = far * user_.furtherTake;
  for (std::size_t base = 0; base < bases.size(); ++base)
    if (bases[base] > 0) ns += bases[base] * loadNs({static_cast<Base>(base), member_, 0});
  return ns + op.operands * std::max(0.0, 1 / machine_.foldNear - near_.load);
}

Price Pricing::computed(const BoundOp& op) const {
  const bool adds = op.kind == Kind::Fold;
  const bool stores = op.dst.isPeersBuffer();
  Price price;
  price.nsPerByte = adds ? loadAllNs(op) : loadNs(op.src);
  price.nsPerByte += stores ? crossingNs(op.dst.peer) : storeNs(op, price.nsPerByte);
  for (std::uint32_t k = 0; k < op.spread; ++k)
    price.nsPerByte += crossingNs(plan_.operands[op.firstSpread + k].peer);
  // A copy from a peer waits for its first line, and a flag for lines that were stored to one.
  if (!adds && op.src.isPeers()) price.fixedNs += machine_.exchangeNs;
  if (stores || op.spread > 0) price.fixedNs += machine_.exchangeNs * across_;
  if (pastCaches_) price.memoryPerByte = (adds ? op.operands : 1) + 1 + op.spread;
  return price;
}

}  // namespace weft::sim
