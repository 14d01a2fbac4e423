// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange.h"

#include <numeric>

#include "schedule/algorithms/generators.h"

namespace weft::engine {
namespace {

// Blocks, each with its place.
class Placed {
 public:
  Placed(const Blocks& blocks, reduce::DType type)
      : blocks_(blocks), type_(type), at_(blocks.displs.begin(), blocks.displs.end()) {
    if (!at_.empty()) return;
    at_.resize(blocks.counts.size());
    std::exclusive_scan(blocks.counts.begin(), blocks.counts.end(), at_.begin(), std::size_t{0});
  }

  PairOp transfer(bool isSend, std::uint32_t peer, schedule::Slot slot) const {
    const std::size_t count = blocks_.counts[slot.index];
    std::byte* const data =
        count == 0 ? nullptr : blocks_.start + at_[slot.index] * reduce::sizeOf(type_);
    return {isSend, peer, data, count, type_};
  }

 private:
  const Blocks& blocks_;
  const reduce::DType type_;
  std::vector<std::size_t> at_;
};

schedule::Schedule scheduleOf(const Exchange& e) {
  if (e.collective == schedule::Collective::Gather) return schedule::directGather(e.ranks, e.root);
  if (e.collective == schedule::Collective::Scatter)
    return schedule::directScatter(e.ranks, e.root);
  return schedule::directAllToAll(e.ranks);
}

}  // namespace

std::vector<PairOp> batchOf(const Exchange& e) {
  const Placed sent(e.in, e.type), received(e.out, e.type);
  std::vector<PairOp> batch;
  for (const schedule::Op& op : scheduleOf(e).program(e.rank).ops) {
    if (op.kind == schedule::OpKind::Put) batch.push_back(sent.transfer(true, op.peer, op.src));
    if (op.kind == schedule::OpKind::Wait)
      batch.push_back(received.transfer(false, op.peer, op.dst));
    if (op.kind != schedule::OpKind::Copy) continue;
    batch.push_back(sent.transfer(true, e.rank, op.src));
    batch.push_back(received.transfer(false, e.rank, op.dst));
  }
  return batch;
}

}  // namespace weft::engine
