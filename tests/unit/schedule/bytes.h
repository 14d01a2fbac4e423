// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "schedule/ir.h"

// The byte domain, as small and as independent of the verifier as possible: executes a schedule on
// vectors of integers under a chosen interleaving and compares with the collective computed
// directly.
namespace weft::test {
using namespace schedule;

// When a Put reads its source and writes its target: at once, at the last moment at which the
// receiver would otherwise be stuck, or at any time between. Which rank goes on is random in all
// three.
enum class Delivery { Early, Late, Random };

class ByteRun {
 public:
  // `lengths` of the logical chunks, in elements.
  ByteRun(const Schedule& s, std::vector<size_t> lengths) : s_(s), lengths_(std::move(lengths)) {}

  // Empty if every Out is right, else what went wrong.
  std::string run(Delivery delivery, unsigned seed) {
    random_.seed(seed);
    delivery_ = delivery;
    setUp();
    for (bool progress = true; progress;) {
      progress = advanceRanks();
      if (!inFlight_.empty() && (!progress || delivery_ == Delivery::Random)) {
        deliver(random_() % inFlight_.size());
        progress = true;
      }
    }
    for (uint32_t r = 0; r < s_.ranks; ++r)
      if (ranks_[r].next != ranks_[r].program.ops.size())
        return text("rank ", r, " is stuck at op ", ranks_[r].next);
    return compare();
  }

 private:
  using Vector = std::vector<int64_t>;
  struct Rank {
    Program program;
    size_t next = 0;
    Vector in, out;
    std::vector<Vector> tmp;
    std::vector<Slot> arrived;
  };
  struct InFlight {
    uint32_t sender;
    Op op;
  };
  static constexpr int64_t kGarbage = -0x5555555555;

  static int64_t input(uint32_t rank, size_t element) {
    return static_cast<int64_t>(rank + 1) * 1'000'003 + static_cast<int64_t>(element * element + 7);
  }

  size_t total() const { return std::accumulate(lengths_.begin(), lengths_.end(), size_t{0}); }
  size_t offsetOf(uint32_t chunk) const {
    return std::accumulate(lengths_.begin(), lengths_.begin() + chunk, size_t{0});
  }
  // Has this buffer one block only, that of rank r?
  bool oneBlock(Buf buf) const {
    return buf == Buf::In ? hasOneIn(s_.collective) : hasOneOut(s_.collective);
  }
  size_t sizeOf(Buf buf, uint32_t rank) const {
    if (!oneBlock(buf)) return total();
    return offsetOf((rank + 1) * s_.parts) - offsetOf(rank * s_.parts);
  }

  void setUp() {
    ranks_.assign(s_.ranks, {});
    inFlight_.clear();
    for (uint32_t r = 0; r < s_.ranks; ++r) {
      Rank& rank = ranks_[r];
      rank.program = s_.program(r);
      if (s_.inChunks > 0 && hasIn(s_.collective, s_.root, r))
        for (size_t e = 0; e < sizeOf(Buf::In, r); ++e) rank.in.push_back(input(r, e));
      if (s_.outChunks > 0 && hasOut(s_.collective, s_.root, r))
        rank.out.assign(sizeOf(Buf::Out, r), kGarbage);
      const size_t longest = *std::max_element(lengths_.begin(), lengths_.end());
      rank.tmp.assign(s_.tmpChunks, Vector(longest, kGarbage));
    }
  }

  // The first element of a slot.
  int64_t* at(uint32_t r, Slot slot) {
    if (slot.owner != kMine) r = slot.owner;
    Rank& rank = ranks_[r];
    if (slot.buf == Buf::Tmp) return rank.tmp.at(slot.index).data();
    const uint32_t first = oneBlock(slot.buf) ? r * s_.parts : 0;
    const size_t offset = offsetOf(first + slot.index) - offsetOf(first);
    return (slot.buf == Buf::In ? rank.in : rank.out).data() + offset;
  }

  bool advanceRanks() {
    std::vector<uint32_t> order(s_.ranks);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random_);
    bool progress = false;
    for (uint32_t r : order) {
      const size_t steps = delivery_ == Delivery::Random ? 1 + random_() % 3 : ~size_t{0};
      for (size_t i = 0; i < steps && step(r); ++i) progress = true;
    }
    return progress;
  }

  bool step(uint32_t r) {
    Rank& rank = ranks_[r];
    if (rank.next == rank.program.ops.size()) return false;
    const Op& op = rank.program.ops[rank.next];
    const auto& arrived = rank.arrived;
    if (op.kind == OpKind::Wait &&
        std::find(arrived.begin(), arrived.end(), op.dst) == arrived.end())
      return false;
    ++rank.next;
    if (op.kind == OpKind::Put) {
      inFlight_.push_back({r, op});
      if (delivery_ == Delivery::Early) deliver(inFlight_.size() - 1);
    } else if (op.kind != OpKind::Wait) {
      for (uint32_t c = 0; c < op.chunks; ++c) compute(r, op, c);
    }
    return true;
  }

  void deliver(size_t which) {
    const InFlight put = inFlight_[which];
    inFlight_.erase(inFlight_.begin() + static_cast<std::ptrdiff_t>(which));
    for (uint32_t c = 0; c < put.op.chunks; ++c)
      std::copy_n(at(put.sender, put.op.src + c), lengths_[put.op.shape + c],
                  at(put.op.peer, put.op.dst + c));
    ranks_[put.op.peer].arrived.push_back(put.op.dst);
  }

  // Finish triples and Scale multiplies by 5, so that leaving one out or repeating it shows.
  void compute(uint32_t r, const Op& op, uint32_t c) {
    const size_t length = lengths_[op.shape + c];
    int64_t* dst = at(r, op.dst + c);
    if (op.kind != OpKind::Reduce) {
      const int64_t factor = op.kind == OpKind::Copy ? 1 : op.apply == ApplyId::Finish ? 3 : 5;
      const int64_t* src = at(r, op.src + c);
      for (size_t e = 0; e < length; ++e) dst[e] = src[e] * factor;
      return;
    }
    Vector sum(length, 0);
    for (uint32_t k = 0; k < op.operands; ++k) {
      const int64_t* src = at(r, ranks_[r].program.operands[op.firstOperand + k] + c);
      for (size_t e = 0; e < length; ++e) sum[e] += src[e];
    }
    std::copy(sum.begin(), sum.end(), dst);
  }

  // Element e of slot `chunk` of Out on rank r, computed directly.
  int64_t expected(uint32_t r, uint32_t chunk, size_t e) const {
    const size_t inVector = offsetOf(chunk) + e;
    const uint32_t block = chunk / s_.parts;
    switch (s_.collective) {
      case Collective::Broadcast:
        return input(s_.root, inVector);
      case Collective::AllGather:
      case Collective::Gather:
        return input(block, inVector - offsetOf(block * s_.parts)) * (s_.made ? 3 : 1);
      case Collective::Scatter:
        return input(s_.root, offsetOf(r) + e);
      case Collective::AllToAll:
        return input(chunk, offsetOf(r) + e);
      default:
        break;
    }
    const size_t element = offsetOf(logicalOut(s_.collective, r, chunk, s_.parts)) + e;
    int64_t sum = 0;
    for (uint32_t other = 0; other < s_.ranks; ++other) sum += input(other, element);
    return sum * 3 * (s_.scaled ? 5 : 1);
  }

  std::string compare() {
    for (uint32_t r = 0; r < s_.ranks; ++r) {
      if (!hasOut(s_.collective, s_.root, r)) continue;
      for (uint32_t i = 0; i < s_.outChunks; ++i) {
        const size_t length = lengths_[logicalOut(s_.collective, r, i, s_.parts)];
        for (size_t e = 0; e < length; ++e)
          if (at(r, out(i))[e] != expected(r, i, e))
            return text("rank ", r, " has a wrong element ", e, " in Out(", i, ")");
      }
    }
    return {};
  }

  const Schedule& s_;
  const std::vector<size_t> lengths_;
  Delivery delivery_ = Delivery::Early;
  std::mt19937 random_;
  std::vector<Rank> ranks_;
  std::vector<InFlight> inFlight_;
};

}  // namespace weft::test
