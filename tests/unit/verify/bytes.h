// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/verify/job.h"
#include "transports/window.h"

// The byte domain, as small and as independent of the proof as possible: runs the bound plans of
// all ranks on real memory under a chosen interleaving and compares each call's result with the
// collective computed directly.
namespace weft::test {

// When a put reads its source and writes its target: at once, when nothing else can go on, or at
// any time between. Which rank and lane go on is random in all three.
enum class Delivery { Early, Late, Random };

// What a call's buffers hold, in elements of 32 bits that wrap round, so that the order of additions
// makes no difference. Scale multiplies by 5; Finish, where it divides, by 3; an epilogue multiplies
// by 3 and adds the place in the block.
class Reference {
 public:
  Reference(const verify::PlannedCall& planned, std::uint32_t ranks, std::uint32_t salt)
      : call_(planned.call), ranks_(ranks), salt_(salt) {
    for (std::uint32_t b = 0; b < (isVector() ? 1 : ranks); ++b) {
      length_.push_back(call_.counts.empty() ? call_.count : call_.counts[b]);
      start_.push_back(b == 0 ? 0 : start_[b - 1] + length_[b - 1]);
      offset_.push_back(call_.displs.empty() ? start_[b] : call_.displs[b]);
    }
  }

  bool has(bool in, std::uint32_t rank) const {
    const auto root = static_cast<std::uint32_t>(call_.root);
    return in ? schedule::hasIn(call_.collective, root, rank)
              : schedule::hasOut(call_.collective, root, rank);
  }
  bool hasOneBlock(bool in) const {
    return in ? schedule::hasOneIn(call_.collective) : schedule::hasOneOut(call_.collective);
  }
  std::size_t offsetOf(std::uint32_t block) const { return offset_[block]; }

  // Calls body(place in the buffer, value) for each element that In or Out holds.
  template <class Body>
  void forEach(bool in, std::uint32_t rank, Body&& body) const {
    for (std::uint32_t b = 0; has(in, rank) && b < length_.size(); ++b) {
      if (hasOneBlock(in) && b != rank) continue;
      for (std::size_t e = 0; e < length_[b]; ++e)
        body((hasOneBlock(in) ? 0 : offset_[b]) + e,
             in ? input(rank, start_[b] + e) : output(rank, b, e));
    }
  }
  std::size_t sizeOf(bool in, std::uint32_t rank) const {
    std::size_t size = 0;
    forEach(in, rank, [&](std::size_t at, std::uint32_t) { size = std::max(size, at + 1); });
    return size;
  }
  std::size_t blockLength(std::uint32_t rank) const { return isVector() ? 0 : length_[rank]; }

  bool makesBlocks() const { return call_.collective == schedule::Collective::AllGather; }
  // Element e of a rank's block as its epilogue makes it.
  std::uint32_t made(std::uint32_t rank, std::size_t e, std::uint32_t sum) const {
    const std::uint32_t from = makesBlocks() ? input(rank, start_[rank] + e) : sum;
    return 3 * from + static_cast<std::uint32_t>(e);
  }

 private:
  bool isVector() const {
    const schedule::Collective c = call_.collective;
    return c == schedule::Collective::Broadcast || c == schedule::Collective::Reduce ||
           (c == schedule::Collective::AllReduce && call_.op != reduce::RedOp::Epilogue);
  }
  std::uint32_t input(std::uint32_t rank, std::size_t position) const {
    const auto p = static_cast<std::uint32_t>(position);
    return ((salt_ + rank + 1) * 2'654'435'761u) ^ ((p + 1) * 2'246'822'519u);
  }
  std::uint32_t output(std::uint32_t rank, std::uint32_t block, std::size_t e) const {
    const auto root = static_cast<std::uint32_t>(call_.root);
    const bool calls = call_.op == reduce::RedOp::Epilogue;
    switch (call_.collective) {
      case schedule::Collective::Broadcast:
      case schedule::Collective::Scatter:
        return input(root, start_[block] + e);
      case schedule::Collective::AllGather:
        if (calls) return made(block, e, 0);
        [[fallthrough]];
      case schedule::Collective::Gather:
        return input(block, start_[block] + e);
      case schedule::Collective::AllToAll:
        return input(block, start_[rank] + e);
      default:
        break;
    }
    std::uint32_t sum = 0;
    for (std::uint32_t r = 0; r < ranks_; ++r) sum += input(r, start_[block] + e);
    if (calls) return made(block, e, sum);
    if (call_.op == reduce::RedOp::PreMulSum) return 5 * sum;
    return call_.op == reduce::RedOp::Avg && ranks_ > 1 ? 3 * sum : sum;
  }

  const plan::Call& call_;
  const std::uint32_t ranks_, salt_;
  std::vector<std::size_t> length_, start_, offset_;  // by block, in elements
};

class ByteRun {
 public:
  explicit ByteRun(const verify::Job& job) : job_(job), lanes_(job) {
    for (std::uint32_t c = 0; c < job.calls.size(); ++c)
      references_.emplace_back(job.calls[c], lanes_.ranks(), c * lanes_.ranks());
  }

  // Empty if every result is right, else what went wrong.
  std::string run(Delivery delivery, unsigned seed) {
    random_.seed(seed);
    delivery_ = delivery;
    setUp();
    for (bool moved = true; moved && error_.empty();) {
      moved = advanceRanks();
      if (!inFlight_.empty() && (!moved || delivery_ == Delivery::Random)) {
        deliver(random_() % inFlight_.size());
        moved = true;
      }
    }
    for (std::uint32_t r = 0; r < lanes_.ranks() && error_.empty(); ++r)
      if (ranks_[r].call != job_.calls.size()) fail(text("rank ", r, " is stuck"));
    return error_;
  }

 private:
  using Kind = plan::BoundOp::Kind;
  using Element = std::uint32_t;
  struct Arrival {
    std::uint32_t invocation = ~0u, sender = 0;
    bool isSignal = false;
  };
  struct Arrivals {
    std::vector<std::byte> slots;
    std::vector<Arrival> raised;
  };
  struct Buffers {  // of one call: In and Out lie in one piece of memory
    std::vector<std::byte> memory;
    std::size_t in = 0, out = 0, inBytes = 0, outBytes = 0;
  };
  struct Rank {
    std::uint32_t call = 0, completed = 0;
    bool entered = false;
    std::array<std::vector<std::byte>, transport::kMaxLanes> arenas, published;
    std::vector<Arrivals> ofLanes, ofRings;
    std::vector<std::byte> ringArena;
    std::vector<Buffers> buffers;  // by call
    std::vector<Element> handed;   // how often the epilogue got each element of the block
  };
  struct InFlight {
    std::uint32_t lane;
    const plan::BoundOp* op;
  };

  void fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }

  void setUp() {
    error_.clear();
    inFlight_.clear();
    next_.assign(lanes_.count(), 0);
    pending_.assign(lanes_.count(), 0);
    ranks_.assign(lanes_.ranks(), {});
    for (std::uint32_t r = 0; r < lanes_.ranks(); ++r) {
      for (auto& arena : ranks_[r].arenas) arena.assign(job_.target.budget.arenaBytes, kGarbage);
      for (auto& lane : ranks_[r].published) lane.assign(job_.target.bytesPerRegion(), kGarbage);
      const auto slots = [](std::uint32_t count) {
        return Arrivals{std::vector(count * sizeof(transport::ArrivalSlot), kGarbage),
                        std::vector<Arrival>(count)};
      };
      ranks_[r].ofLanes.assign(transport::kMaxLanes, slots(job_.target.arrivalSlots));
      ranks_[r].ofRings.assign(job_.target.ring, slots(job_.target.pairArrivalSlots));
      ranks_[r].ringArena.assign(lanes_.ranks() * job_.target.ringStages.bytes, kGarbage);
      for (std::uint32_t c = 0; c < job_.calls.size(); ++c) ranks_[r].buffers.push_back(lay(c, r));
    }
  }

  // In place, the smaller buffer is a block of the larger one.
  Buffers lay(std::uint32_t call, std::uint32_t rank) const {
    const Reference& reference = references_[call];
    Buffers b;
    b.inBytes = reference.sizeOf(true, rank) * sizeof(Element);
    b.outBytes = reference.sizeOf(false, rank) * sizeof(Element);
    const bool both = reference.has(true, rank) && reference.has(false, rank);
    if (!both || !job_.calls[call].isInPlace(rank))
      b.out = b.inBytes;
    else if (reference.hasOneBlock(true))
      b.in = reference.offsetOf(rank) * sizeof(Element);
    else if (reference.hasOneBlock(false))
      b.out = reference.offsetOf(rank) * sizeof(Element);
    b.memory.assign(std::max(b.in + b.inBytes, b.out + b.outBytes), kGarbage);
    return b;
  }

  // ---- ranks and lanes

  bool advanceRanks() {
    std::vector<std::uint32_t> order(lanes_.ranks());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random_);
    bool moved = false;
    for (const std::uint32_t r : order) moved = advance(r) || moved;
    return moved;
  }

  bool advance(std::uint32_t r) {
    Rank& rank = ranks_[r];
    if (rank.call == job_.calls.size() || !error_.empty()) return false;
    if (!rank.entered) return enter(r);
    bool moved = false;
    const std::uint32_t end = lanes_.firstOf(rank.call + 1);
    const std::uint32_t limit = std::min(end, rank.completed + job_.lanes);
    for (std::uint32_t i = rank.completed; i < limit; ++i)
      moved = advanceLane(lanes_.laneOf(i, r)) || moved;
    for (; rank.completed < end && isDone(lanes_.laneOf(rank.completed, r)); ++rank.completed)
      moved = true;
    if (rank.completed < end) return moved;
    leave(r);
    return true;
  }

  bool enter(std::uint32_t r) {
    Rank& rank = ranks_[r];
    rank.entered = true;
    Buffers& b = rank.buffers[rank.call];
    std::ranges::fill(b.memory, kGarbage);
    const Reference& reference = references_[rank.call];
    reference.forEach(true, r, [&](std::size_t at, Element value) {
      std::memcpy(b.memory.data() + b.in + at * sizeof(value), &value, sizeof(value));
    });
    rank.handed.assign(reference.blockLength(r), 0);
    return true;
  }

  // The result must be there; then the caller uses its buffers for something else.
  void leave(std::uint32_t r) {
    Rank& rank = ranks_[r];
    Buffers& b = rank.buffers[rank.call];
    references_[rank.call].forEach(false, r, [&](std::size_t at, Element want) {
      Element value = 0;
      std::memcpy(&value, b.memory.data() + b.out + at * sizeof(value), sizeof(value));
      if (value != want)
        fail(text("call ", rank.call, ", rank ", r, ": element ", at, " is wrong"));
    });
    const bool calls = job_.calls[rank.call].plan(r).callsEpilogue;
    if (calls && std::ranges::count(rank.handed, 1u) != std::ssize(rank.handed))
      fail(text("call ", rank.call, ", rank ", r, ": not each element gets to the epilogue once"));
    std::ranges::fill(b.memory, kGarbage);
    rank.entered = false;
    ++rank.call;
  }

  bool isDone(std::uint32_t lane) const {
    return next_[lane] == lanes_.length(lane) && pending_[lane] == 0;
  }

  bool advanceLane(std::uint32_t lane) {
    const std::size_t most = delivery_ == Delivery::Random ? 1 + random_() % 3 : ~std::size_t{0};
    std::size_t steps = 0;
    for (; steps < most && next_[lane] < lanes_.length(lane) && error_.empty(); ++steps) {
      const plan::BoundOp& op = lanes_.planOf(lane).ops[next_[lane]];
      if (!mayRun(lane, op)) break;
      ++next_[lane];
      run(lane, op);
    }
    return steps > 0;
  }

  bool mayRun(std::uint32_t lane, const plan::BoundOp& op) {
    if (op.drain && pending_[lane] != 0) return false;
    if (op.kind == Kind::Wait) return hasArrived(lane, op.arrival, op.peer);
    if (op.kind == Kind::Publish)
      return std::ranges::all_of(lanes_.planOf(lane).readers,
                                 [&](std::uint32_t reader) { return isFree(lane, reader); });
    if (!verify::isPut(op)) return true;
    if (op.peer < lanes_.ranks()) return isFree(lane, op.peer);
    fail("puts to nobody");
    return false;
  }

  // Has that rank completed what used the invocation's slots before?
  bool isFree(std::uint32_t lane, std::uint32_t peer) const {
    return lanes_[lane].invocation < ranks_[peer].completed + lanes_.planOf(lane).depth;
  }

  bool hasArrived(std::uint32_t lane, std::uint32_t index, std::uint32_t peer) {
    const std::vector<Arrival>& raised = arrivalsOf(lanes_[lane].rank, lane).raised;
    if (index >= raised.size()) return false;
    const Arrival& arrival = raised[index];
    if (arrival.invocation != lanes_[lane].invocation) return false;
    if (arrival.sender != peer) fail(text("takes the arrival of rank ", arrival.sender));
    return true;
  }

  void run(std::uint32_t lane, const plan::BoundOp& op) {
    if (op.kind == Kind::Wait) return;
    if (!verify::isPut(op)) return compute(lane, op);
    if (op.kind == Kind::PutDirect) {
      const Arrivals& here = arrivalsOf(lanes_[lane].rank, lane);
      if (!hasArrived(lane, op.clearToSend, op.peer) || !here.raised[op.clearToSend].isSignal)
        return fail("puts without a clear-to-send");
    }
    ++pending_[lane];
    inFlight_.push_back({lane, &op});
    if (delivery_ == Delivery::Early) deliver(inFlight_.size() - 1);
  }

  void deliver(std::size_t which) {
    const auto [lane, op] = inFlight_[which];
    inFlight_.erase(inFlight_.begin() + static_cast<std::ptrdiff_t>(which));
    --pending_[lane];
    const std::uint32_t me = lanes_[lane].rank;
    Arrivals& there = arrivalsOf(op->peer, lane);
    if (op->arrival >= there.raised.size()) return fail("raises no arrival slot");
    const std::uint64_t bytes = op->kind <= Kind::PutDirect ? lengthOf(lane, *op) : 0;
    if (bytes != 0) {
      const std::byte* const from = at(lane, op->src, bytes);
      std::byte* const to = targetOf(lane, *op, bytes);
      if (from != nullptr && to != nullptr) std::memmove(to, from, bytes);
    }
    there.raised[op->arrival] = {lanes_[lane].invocation, me, op->kind == Kind::Signal};
  }

  // Of a put, at its peer.
  std::byte* targetOf(std::uint32_t lane, const plan::BoundOp& op, std::uint64_t bytes) {
    Arrivals& there = arrivalsOf(op.peer, lane);
    if (op.kind == Kind::PutInline) {
      if (bytes > transport::kInlineBytes) fail("does not fit into an arrival slot");
      return within(
          there.slots,
          op.arrival * sizeof(transport::ArrivalSlot) + offsetof(transport::ArrivalSlot, inlined),
          bytes);
    }
    if (op.kind == Kind::Put) return inStaging(op.peer, lane, op.dst, bytes);
    return inBuffer(lane, op.peer, false, op.dst.offset + lanes_[lane].shift, bytes);
  }

  // ---- bytes

  std::uint64_t lengthOf(std::uint32_t lane, const plan::BoundOp& op) const {
    const std::uint64_t shift = lanes_[lane].shift;
    return std::min(op.limit > shift ? op.limit - shift : 0, op.max);
  }
  std::vector<std::byte>& arenaOf(std::uint32_t rank, std::uint32_t lane) {
    return ranks_[rank].arenas[lanes_[lane].invocation % transport::kMaxLanes];
  }
  Arrivals& arrivalsOf(std::uint32_t rank, std::uint32_t lane) {
    Rank& r = ranks_[rank];
    return (lanes_.planOf(lane).inRing ? r.ofRings : r.ofLanes)[lanes_.place(lane)];
  }

  std::byte* within(std::vector<std::byte>& memory, std::uint64_t offset, std::uint64_t bytes) {
    if (offset <= memory.size() && bytes <= memory.size() - offset) return memory.data() + offset;
    fail("reaches beyond its memory");
    return nullptr;
  }

  std::byte* inStaging(std::uint32_t rank, std::uint32_t lane, const plan::Place& place,
                       std::uint64_t bytes) {
    if (place.base != plan::Base::Ring) return within(arenaOf(rank, lane), place.offset, bytes);
    return within(ranks_[rank].ringArena, place.offset + lanes_.stageOf(lane), bytes);
  }

  std::byte* inPublished(std::uint32_t lane, const plan::Place& place, std::uint64_t bytes) {
    Rank& rank = ranks_[place.peer];
    if (lanes_.planOf(lane).inRing)
      return within(rank.ringArena, place.offset + lanes_.stageOf(lane), bytes);
    return within(rank.published[lanes_[lane].invocation % transport::kMaxLanes], place.offset,
                  bytes);
  }

  std::byte* inBuffer(std::uint32_t lane, std::uint32_t rank, bool in, std::uint64_t offset,
                      std::uint64_t bytes) {
    Buffers& b = ranks_[rank].buffers[lanes_[lane].call];
    if (offset + bytes > (in ? b.inBytes : b.outBytes) || offset + bytes < offset) {
      fail("reaches beyond a buffer");
      return nullptr;
    }
    return b.memory.data() + (in ? b.in : b.out) + offset;
  }

  std::byte* at(std::uint32_t lane, const plan::Place& place, std::uint64_t bytes) {
    const std::uint32_t me = lanes_[lane].rank;
    switch (place.base) {
      case plan::Base::In:
      case plan::Base::Out:
        return inBuffer(lane, me, place.base == plan::Base::In, place.offset + lanes_[lane].shift,
                        bytes);
      case plan::Base::Arena:
      case plan::Base::Ring:
        return inStaging(me, lane, place, bytes);
      case plan::Base::Arrivals:
        return within(arrivalsOf(me, lane).slots, place.offset, bytes);
      case plan::Base::Published:
        if (place.peer < lanes_.ranks()) return inPublished(lane, place, bytes);
        fail("reads what nobody published");
        return nullptr;
      default:
        if (place.peer < lanes_.ranks())
          return inBuffer(lane, place.peer, place.base == plan::Base::PeerIn, place.offset, bytes);
        fail("reaches into nobody's buffer");
        return nullptr;
    }
  }

  void compute(std::uint32_t lane, const plan::BoundOp& op) {
    const plan::Plan& plan = lanes_.planOf(lane);
    const std::uint64_t bytes = lengthOf(lane, op);
    if (bytes == 0) return;
    if (bytes % sizeof(Element) != 0) return fail("cuts an element");
    const bool calls = plan.callsEpilogue && op.finish;
    std::vector<Element> made(bytes / sizeof(Element), 0), addend(made.size());
    const bool reads = !calls || !references_[lanes_[lane].call].makesBlocks();
    const std::uint32_t operands = op.kind == Kind::Fold ? op.operands : 1;
    for (std::uint32_t k = 0; reads && k < operands; ++k) {
      const std::byte* from =
          at(lane, op.kind == Kind::Fold ? plan.operands[op.first + k] : op.src, bytes);
      if (from == nullptr) return;
      std::memcpy(addend.data(), from, bytes);
      for (std::size_t e = 0; e < made.size(); ++e) made[e] += addend[e];
    }
    if (calls) return runEpilogue(lane, op, &made);
    const bool divides = (op.finish || op.kind == Kind::Finish) && plan.divisor != 1;
    for (Element& e : made) e *= (op.kind == Kind::Scale ? 5u : 1u) * (divides ? 3u : 1u);
    store(lane, op, made);
  }

  void runEpilogue(std::uint32_t lane, const plan::BoundOp& op, std::vector<Element>* elements) {
    const std::uint32_t me = lanes_[lane].rank;
    const std::size_t first = lanes_[lane].shift / sizeof(Element);
    std::vector<Element>& handed = ranks_[me].handed;
    if (first + elements->size() > handed.size()) return fail("hands over more than a block");
    for (std::size_t e = 0; e < elements->size(); ++e) {
      Element& element = (*elements)[e];
      element = references_[lanes_[lane].call].made(me, first + e, element);
      ++handed[first + e];
    }
    store(lane, op, *elements);
  }

  // To the op's target and all others that it spreads to.
  void store(std::uint32_t lane, const plan::BoundOp& op, const std::vector<Element>& elements) {
    const std::uint64_t bytes = elements.size() * sizeof(Element);
    for (std::uint32_t k = 0; k <= op.spread; ++k) {
      const plan::Place& to =
          k == 0 ? op.dst : lanes_.planOf(lane).operands[op.firstSpread + k - 1];
      if (std::byte* const there = at(lane, to, bytes)) std::memcpy(there, elements.data(), bytes);
    }
  }

  static constexpr std::byte kGarbage{0xa5};

  const verify::Job& job_;
  const verify::Lanes lanes_;
  std::vector<Reference> references_;  // by call
  Delivery delivery_ = Delivery::Early;
  std::mt19937 random_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> next_, pending_;  // by lane: its next op, puts that may read sources
  std::vector<InFlight> inFlight_;
  std::string error_;
};

// In early, late and random interleavings; empty if all results are right.
inline std::string wrongOnBytes(const verify::Job& job) {
  ByteRun bytes(job);
  for (const Delivery delivery : {Delivery::Early, Delivery::Late, Delivery::Random})
    for (unsigned seed = 0; seed < (delivery == Delivery::Random ? 3 : 1); ++seed) {
      const std::string wrong = bytes.run(delivery, seed);
      if (!wrong.empty()) return wrong;
    }
  return {};
}

}  // namespace weft::test
