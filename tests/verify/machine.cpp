// SPDX-License-Identifier: Apache-2.0
#include "tests/verify/machine.h"

#include <algorithm>

#include "base/text.h"
#include "schedule/ir.h"
#include "transports/window.h"

namespace weft::verify {
namespace {

using Kind = plan::BoundOp::Kind;

bool carriesPayload(Kind kind) {
  return kind == Kind::Put || kind == Kind::PutInline || kind == Kind::PutDirect;
}

bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// What nobody may read.
Value undefined() {
  Value v;
  v.pending = true;
  return v;
}

}  // namespace

Machine::Machine(const Job& job, const Lanes& lanes)
    : job_(job),
      lanes_(lanes),
      order_(lanes.count() + lanes.ranks()),
      admitted_(lanes.count()),
      completed_(lanes.count()) {
  for (std::uint32_t c = 0; c < job.calls.size(); ++c)
    buffers_.emplace_back(job.calls[c], lanes.ranks(), c);
  const std::size_t ofLanes = std::size_t{lanes.ranks()} * transport::kMaxLanes;
  arenas_.assign(ofLanes, Memory(static_cast<std::uint32_t>(job.target.budget.arenaBytes)));
  ofLanes_.assign(ofLanes, Arrivals(job.target.arrivalSlots));
  published_.assign(ofLanes, Memory(static_cast<std::uint32_t>(job.target.bytesPerRegion())));
  ringArenas_.assign(
      lanes.ranks(),
      Memory(static_cast<std::uint32_t>(lanes.ranks() * job.target.ringStages.bytes)));
  ofRings_.assign(std::size_t{lanes.ranks()} * job.target.ring,
                  Arrivals(job.target.pairArrivalSlots));
}

Memory& Machine::arenaOf(std::uint32_t rank, std::uint32_t lane) {
  return arenas_[rank * transport::kMaxLanes + lanes_[lane].invocation % transport::kMaxLanes];
}

Memory& Machine::publishedOf(std::uint32_t rank, std::uint32_t lane) {
  return published_[rank * transport::kMaxLanes + lanes_[lane].invocation % transport::kMaxLanes];
}

Machine::Arrivals& Machine::arrivalsOf(std::uint32_t rank, std::uint32_t lane) {
  const std::uint32_t at = lanes_.place(lane);
  return lanes_.planOf(lane).inRing ? ofRings_[rank * job_.target.ring + at]
                                    : ofLanes_[rank * transport::kMaxLanes + at];
}

Status Machine::useBuffers(std::uint32_t rank, std::uint32_t call, std::uint32_t time,
                           const char* what) {
  const std::uint32_t caller = lanes_.callerOf(rank);
  order_.begin(caller, time);
  Memory& memory = buffers_[call].memoryOf(rank);
  const auto open =
      memory.history.touch(0, memory.bytes, {caller, time}, true, order_, order_.of(caller));
  if (!open) return {};
  return Status::error(Code::InternalError,
                       text(describe(open->access), ": touches a buffer of rank ", rank, what));
}

Status Machine::enter(std::uint32_t rank, std::uint32_t call) {
  WEFT_TRY(useBuffers(rank, call, 2 * call, " before that has entered the call"));
  buffers_[call].fill(rank);
  return {};
}

Status Machine::leave(std::uint32_t rank, std::uint32_t call) {
  const std::uint32_t caller = lanes_.callerOf(rank);
  order_.learn(caller, completed_[lanes_.laneOf(lanes_.firstOf(call + 1) - 1, rank)]);
  WEFT_TRY(useBuffers(rank, call, 2 * call + 1, ", which may have left the call"));
  const plan::Plan& plan = job_.calls[call].plan(rank);
  if (job_.calls[call].isRefused() || (plan.runsAhead && plan.opening == 0)) return {};
  for (std::uint32_t r = 0; r < lanes_.ranks(); ++r)
    if (order_.of(caller)[lanes_.callerOf(r)] <= 2 * call)
      return Status::error(Code::InternalError,
                           text(lanes_.where(lanes_.laneOf(lanes_.firstOf(call), rank), 0),
                                ": may leave the call before rank ", r, " has entered it"));
  return {};
}

void Machine::open(std::uint32_t lane) {
  const Lane& l = lanes_[lane];
  order_.learn(lane, order_.of(lanes_.callerOf(l.rank)));
  if (l.invocation >= transport::kMaxLanes)
    order_.learn(lane, completed_[lanes_.laneOf(l.invocation - transport::kMaxLanes, l.rank)]);
  admitted_[lane].assign(lanes_.ranks(), false);
}

void Machine::close(std::uint32_t lane) {
  const Lane& l = lanes_[lane];
  order_.begin(lane, lanes_.length(lane));
  order_.drain(lane, lanes_.length(lane));
  if (l.invocation > 0) order_.learn(lane, completed_[lanes_.laneOf(l.invocation - 1, l.rank)]);
  completed_[lane] = order_.of(lane);
}

bool Machine::hasArrived(std::uint32_t lane, const plan::BoundOp& wait) const {
  const std::vector<Arrival>& raised = arrivalsOf(lanes_[lane].rank, lane).raised;
  return wait.arrival >= raised.size() || raised[wait.arrival].lane == lane;
}

Status Machine::run(std::uint32_t lane, std::uint32_t number) {
  const plan::Plan& plan = lanes_.planOf(lane);
  const plan::BoundOp& op = plan.ops[number];
  const Step step{lane, number, op, static_cast<std::uint32_t>(lengthOf(lane, op))};
  order_.begin(lane, number);
  if (op.drain) order_.drain(lane, number);
  if (isPut(op))
    WEFT_TRY(put(step));
  else if (op.kind == Kind::Wait)
    WEFT_TRY(wait(step));
  else if (step.bytes != 0)
    WEFT_TRY(compute(step));
  const bool opens = plan.opening != 0 && number + 1 == plan.opening;
  return opens && !lanes_.callOf(lane).isRefused() ? admit(step) : Status();
}

std::uint64_t Machine::lengthOf(std::uint32_t lane, const plan::BoundOp& op) const {
  const std::uint64_t shift = lanes_[lane].shift;
  return std::min(op.limit > shift ? op.limit - shift : 0, op.max);
}

// --- Messages ---

Status Machine::checkPut(const Step& step) const {
  const std::uint32_t me = lanes_[step.lane].rank, peer = step.op.peer;
  if (peer >= lanes_.ranks() || peer == me) return violation(step, "a rank puts to other ranks");
  const bool inRing = lanes_.planOf(step.lane).inRing;
  const transport::ArrivalRegions regions = job_.target.regions(inRing);
  if (regions.writerOf(step.op.arrival) != me)
    return violation(step, text("arrival slot ", step.op.arrival, " is not in this rank's region"));
  if (inRing && regions.indexOf(step.op.arrival) != 0)
    return violation(step, "of a ring, an invocation has one arrival slot a pair");
  const std::vector<std::uint32_t>& writers = lanes_.callOf(step.lane).plan(peer).writers;
  if (std::ranges::find(writers, me) == writers.end())
    return violation(step, text("rank ", peer, " does not tell it what is completed"));
  return {};
}

// The engine's rule: before an invocation puts into a rank, or publishes what that will read, it has
// completed the one before it that used the same slots.
void Machine::learnThatSlotsAreFree(const Step& step, std::uint32_t peer) {
  const std::uint32_t invocation = lanes_[step.lane].invocation;
  const std::uint32_t depth = lanes_.planOf(step.lane).depth;
  if (!job_.credits || invocation < depth) return;
  const std::uint32_t before = lanes_.laneOf(invocation - depth, peer);
  if (order_.of(step.lane)[before] <= lanes_.length(before))
    order_.learn(step.lane, completed_[before]);
}

Status Machine::put(Step step) {
  WEFT_TRY(checkPut(step));
  learnThatSlotsAreFree(step, step.op.peer);
  const std::uint32_t number = order_.put(step.lane, step.number);
  // Refused are plans on shared buffers alone: there, puts are stores, done when they are issued.
  const bool refused = lanes_.callOf(step.lane).isRefused();
  step.put = refused ? Access::kLocal : number;
  if (!refused) sent_.push_back({step.lane, step.number, number});
  Pieces payload;
  if (!carriesPayload(step.op.kind)) step.bytes = 0;
  if (step.bytes != 0) WEFT_TRY(read(step, step.op.src, &payload));
  if (step.op.kind != Kind::PutInline) {
    Range target;
    if (step.op.kind == Kind::PutDirect && !knowsEntry(step, step.op.clearToSend, step.op.peer))
      return violation(step, text("has no clear-to-send of rank ", step.op.peer));
    if (step.bytes != 0) {
      WEFT_TRY(locateTarget(step, &target));
      WEFT_TRY(write(step, target, payload));
    }
    payload.clear();
  }
  return deliver(step, number, payload);
}

// Where a payload that does not fit into its arrival slot lands.
Status Machine::locateTarget(const Step& step, Range* target) {
  const std::uint64_t offset = step.op.dst.offset;
  const std::uint32_t me = lanes_[step.lane].rank, peer = step.op.peer;
  if (step.op.kind == Kind::Put) {
    const bool rings = step.op.dst.base == plan::Base::Ring;
    const Part part = rings ? ofRing(step.lane, me)
                            : Part{me * job_.target.bytesPerRegion(), job_.target.bytesPerRegion()};
    if (offset < part.begin || !fits(offset, step.bytes, part.begin + part.bytes))
      return violation(step, "lands outside of this rank's region");
    if (rings != lanes_.planOf(step.lane).inRing)
      return violation(step, "lands in the memory of other invocations");
    *target =
        rings ? inRings(peer, step, offset)
              : Range{&arenaOf(peer, step.lane), static_cast<std::uint32_t>(offset), step.bytes};
    return {};
  }
  return locateIn(step, peer, false, offset + lanes_[step.lane].shift, target);
}

// Where the first invocation's message of `writer` lies in a rank's rings.
Machine::Part Machine::ofRing(std::uint32_t lane, std::uint32_t writer) const {
  const transport::RingStages& ring = job_.target.ringStages;
  const transport::Stages* const stages = lanes_.stagesOf(lane);
  if (stages == nullptr) return {};
  return {writer * ring.bytes + ring.beginOf(*stages), stages->bytes};
}

Machine::Range Machine::inRings(std::uint32_t rank, const Step& step, std::uint64_t offset) {
  return {&ringArenas_[rank], static_cast<std::uint32_t>(offset + lanes_.stageOf(step.lane)),
          step.bytes};
}

// Is there a signal of `sender`'s in that arrival slot, and is it awaited?
bool Machine::knowsEntry(const Step& step, std::uint32_t index, std::uint32_t sender) const {
  const std::vector<Arrival>& arrivals = arrivalsOf(lanes_[step.lane].rank, step.lane).raised;
  if (index >= arrivals.size() || arrivals[index].lane != step.lane) return false;
  const Arrival& arrival = arrivals[index];
  return arrival.isEntry && arrival.sender == sender &&
         order_.isThrough({arrival.lane, 0, arrival.put}, true, order_.of(step.lane));
}

// The arrival slot: flag, and a payload or bytes that nobody may read.
Status Machine::deliver(const Step& step, std::uint32_t number, const Pieces& payload) {
  if (step.op.kind == Kind::PutInline && step.bytes > transport::kInlineBytes)
    return violation(step, text(step.bytes, " bytes do not fit into an arrival slot"));
  Arrivals& there = arrivalsOf(step.op.peer, step.lane);
  const std::uint32_t begin =
      step.op.arrival * static_cast<std::uint32_t>(sizeof(transport::ArrivalSlot));
  const Range arrival{&there.memory, begin, sizeof(transport::ArrivalSlot)};
  WEFT_TRY(write(step, arrival, {{0, sizeof(transport::ArrivalSlot), undefined()}}));
  if (!payload.empty())
    there.memory.values.write(begin + offsetof(transport::ArrivalSlot, inlined), payload);
  there.raised[step.op.arrival] = {lanes_.laneOf(lanes_[step.lane].invocation, step.op.peer),
                                   lanes_[step.lane].rank, number, step.op.kind == Kind::Signal};
  return {};
}

Status Machine::wait(const Step& step) {
  const std::uint32_t me = lanes_[step.lane].rank;
  Arrivals& here = arrivalsOf(me, step.lane);
  if (step.op.arrival >= here.raised.size())
    return violation(step, "there is no such arrival slot");
  const Arrival& arrival = here.raised[step.op.arrival];
  if (arrival.sender != step.op.peer)
    return violation(
        step, text("takes what rank ", arrival.sender, " put for rank ", step.op.peer, "'s"));
  if (order_.isAwaited(arrival.put)) return violation(step, "waits again for one arrival");
  order_.await(step.lane, step.number, arrival.put);
  const std::uint32_t begin =
      step.op.arrival * static_cast<std::uint32_t>(sizeof(transport::ArrivalSlot));
  return touch(step, {&here.memory, begin, offsetof(transport::ArrivalSlot, inlined)}, false);
}

// The opening is through: of which peers are the buffers known?
Status Machine::admit(const Step& last) {
  const plan::Plan& plan = lanes_.planOf(last.lane);
  for (std::uint32_t i = plan.tells; i < plan.opening; ++i) {
    const plan::BoundOp& wait = plan.ops[i];
    if (!knowsEntry(last, wait.arrival, wait.peer))
      return violation(last, text("opens buffers without an entry of rank ", wait.peer));
    admitted_[last.lane][wait.peer] = true;
  }
  return {};
}

// --- Bytes ---

Status Machine::compute(const Step& step) {
  const plan::Plan& plan = lanes_.planOf(step.lane);
  const Kind kind = step.op.kind;
  if (kind == Kind::Publish) WEFT_TRY(publish(step));
  const bool copies = kind == Kind::Copy || kind == Kind::Store || kind == Kind::Publish;
  if (!copies && step.bytes % plan.elementBytes != 0) return violation(step, "cuts an element");
  if (plan.opening != 0 && (kind == Kind::Scale || kind == Kind::Finish))
    return violation(step, "is no op for shared buffers");
  return kind == Kind::Fold ? fold(step) : copy(step);
}

// In this rank's own memory, before anybody is told.
Status Machine::publish(const Step& step) {
  const plan::Place& to = step.op.dst;
  if (to.base != plan::Base::Published || to.peer != lanes_[step.lane].rank)
    return violation(step, "publishes in another rank's memory");
  for (const std::uint32_t reader : lanes_.planOf(step.lane).readers)
    learnThatSlotsAreFree(step, reader);
  return {};
}

// Copy, Store, Scale, Finish, Publish.
Status Machine::copy(const Step& step) {
  Pieces pieces;
  WEFT_TRY(read(step, step.op.src, &pieces));
  WEFT_TRY(checkOverlap(step, step.op.src));
  const Value own = buffersOf(step.lane).input(lanes_[step.lane].rank, 0);
  for (Piece& p : pieces) {
    if (step.op.kind == Kind::Scale && (p.value.scaled || p.value.sum != own.sum))
      return violation(step, "scales what is not an input");
    p.value.scaled |= step.op.kind == Kind::Scale;
  }
  if (step.op.kind == Kind::Finish) WEFT_TRY(finish(step, &pieces));
  return store(step, pieces);
}

Status Machine::fold(const Step& step) {
  const plan::Plan& plan = lanes_.planOf(step.lane);
  const bool calls = step.op.finish && plan.callsEpilogue;
  Pieces sum, addend;
  // The epilogue makes the blocks of an all-gather: it reads no addend.
  const bool makes = calls && job_.calls[lanes_[step.lane].call].call.collective ==
                                  schedule::Collective::AllGather;
  for (std::uint32_t k = 0; k < step.op.operands && !makes; ++k) {
    const plan::Place& operand = plan.operands[step.op.first + k];
    WEFT_TRY(read(step, operand, k == 0 ? &sum : &addend));
    WEFT_TRY(checkOverlap(step, operand));
    if (k > 0 && !addTo(sum, addend)) return violation(step, "adds what does not belong together");
  }
  if (step.op.operands > 1)
    for (Piece& p : sum) p.value.mix = roundMix(p.value.mix);
  if (makes) sum = {{0, step.bytes, blockAt(step)}};
  if (calls) WEFT_TRY(runEpilogue(step, sum));
  if (step.op.finish) WEFT_TRY(finish(step, &sum));
  return store(step, sum);
}

// This rank's input where the op's segment starts in its block.
Value Machine::blockAt(const Step& step) {
  const Lane& lane = lanes_[step.lane];
  const Buffers& buffers = buffersOf(step.lane);
  return buffers.input(lane.rank,
                       buffers.startOf(lane.rank) + static_cast<std::uint32_t>(lane.shift));
}

// The epilogue is told where in the block it is, and gets every element once.
Status Machine::runEpilogue(const Step& step, const Pieces& addends) {
  const Lane& lane = lanes_[step.lane];
  const Value first = blockAt(step);
  for (const Piece& p : addends)
    if (p.value.chunk != first.chunk + p.first)
      return violation(step, "gives the epilogue other elements than it says");
  if (!buffersOf(step.lane).handOver(lane.rank, static_cast<std::uint32_t>(lane.shift), step.bytes))
    return violation(step, "gives the epilogue an element twice, or none of its block");
  return {};
}

// Divides complete sums, or takes what the epilogue made of them.
Status Machine::finish(const Step& step, Pieces* pieces) {
  const plan::Plan& plan = lanes_.planOf(step.lane);
  if (plan.divisor == 1 && !plan.callsEpilogue) return {};
  if (!plan.callsEpilogue && plan.divisor != lanes_.ranks())
    return violation(step, text("divides by ", plan.divisor));
  const bool sums = schedule::isReduction(job_.calls[lanes_[step.lane].call].call.collective);
  for (Piece& p : *pieces) {
    if (sums && p.value.sum != buffersOf(step.lane).total().sum)
      return violation(step, "finishes an incomplete sum");
    if (p.value.finished) return violation(step, "finishes a sum twice");
    p.value.finished = true;
  }
  return {};
}

// To the op's target and all others that it spreads to.
Status Machine::store(const Step& step, const Pieces& pieces) {
  const plan::Plan& plan = lanes_.planOf(step.lane);
  const PlannedCall& call = lanes_.callOf(step.lane);
  if (step.op.kind == Kind::Finish && step.op.spread != 0)
    return violation(step, "finishes but one of its targets");
  Range source, target;
  const bool copies = step.op.kind == Kind::Copy && (!step.op.stream || step.op.spread == 0);
  if (copies) WEFT_TRY(locate(step, step.op.src, &source));
  const bool absent = call.withoutUnusedBuffer && plan.callsEpilogue && step.op.finish &&
                      call.call.collective == schedule::Collective::ReduceScatter &&
                      step.op.dst.base == plan::Base::Out;
  for (std::uint32_t k = absent ? 1 : 0; k <= step.op.spread; ++k) {
    const plan::Place& to = k == 0 ? step.op.dst : plan.operands[step.op.firstSpread + k - 1];
    if (to.base == plan::Base::In || to.base == plan::Base::PeerIn)
      return violation(step, "In is never written");
    if (to.base == plan::Base::Published && step.op.kind != Kind::Publish)
      return violation(step, "only its own rank writes what is published");
    WEFT_TRY(locate(step, to, &target));
    const bool self = copies && source.memory == target.memory && source.begin == target.begin;
    if (!self) WEFT_TRY(write(step, target, pieces));
  }
  return {};
}

// A source may be a target, but must not lie across one.
Status Machine::checkOverlap(const Step& step, const plan::Place& source) {
  const plan::Plan& plan = lanes_.planOf(step.lane);
  Range from, to;
  WEFT_TRY(locate(step, source, &from));
  for (std::uint32_t k = 0; k <= step.op.spread; ++k) {
    if (k == 0 && step.op.finish && plan.callsEpilogue) continue;  // may be absent
    WEFT_TRY(locate(step, k == 0 ? step.op.dst : plan.operands[step.op.firstSpread + k - 1], &to));
    if (from.memory == to.memory && from.begin != to.begin && from.begin < to.begin + to.bytes &&
        to.begin < from.begin + from.bytes)
      return violation(step, "source and target overlap partially");
  }
  return {};
}

// --- Memory ---

Status Machine::locate(const Step& step, const plan::Place& place, Range* range) {
  const Lane& lane = lanes_[step.lane];
  const bool in = place.base == plan::Base::In || place.base == plan::Base::PeerIn;
  switch (place.base) {
    case plan::Base::In:
    case plan::Base::Out:
      return locateIn(step, lane.rank, in, place.offset + lane.shift, range);
    case plan::Base::PeerIn:
    case plan::Base::PeerOut:
      return locatePeers(step, place, range);
    case plan::Base::Arena:
      *range = {&arenaOf(lane.rank, step.lane), static_cast<std::uint32_t>(place.offset),
                step.bytes};
      if (!fits(place.offset, step.bytes, job_.target.budget.arenaBytes))
        return violation(step, "there is no such staging memory");
      return {};
    case plan::Base::Arrivals:
      *range = {&arrivalsOf(lane.rank, step.lane).memory, static_cast<std::uint32_t>(place.offset),
                step.bytes};
      if (!fits(place.offset, step.bytes, range->memory->bytes))
        return violation(step, "there is no such arrival slot");
      return {};
    case plan::Base::Ring:
      *range = inRings(lane.rank, step, place.offset);
      if (!fits(range->begin, step.bytes, range->memory->bytes))
        return violation(step, "there is no such staging memory in a ring");
      return {};
    case plan::Base::Published:
      return locatePublished(step, place, range);
  }
  return {};
}

// In the In or Out of `rank`.
Status Machine::locateIn(const Step& step, std::uint32_t rank, bool in, std::uint64_t offset,
                         Range* range) {
  Buffers& buffers = buffersOf(step.lane);
  const Buffers::Range whole = in ? buffers.inOf(rank) : buffers.outOf(rank);
  if (!fits(offset, step.bytes, whole.bytes))
    return violation(step, text("reaches beyond rank ", rank, "'s ", in ? "In" : "Out"));
  *range = {&buffers.memoryOf(rank), whole.begin + static_cast<std::uint32_t>(offset), step.bytes};
  return {};
}

Status Machine::locatePeers(const Step& step, const plan::Place& place, Range* range) {
  const bool in = place.base == plan::Base::PeerIn;
  if (place.peer >= lanes_.ranks() || !admitted_[step.lane][place.peer])
    return violation(step, text("touches rank ", place.peer, "'s buffers before they are open"));
  const plan::Plan& theirs = lanes_.callOf(step.lane).plan(place.peer);
  if (!fits(place.offset, step.bytes, in ? theirs.sharedIn : theirs.sharedOut))
    return violation(step, text("rank ", place.peer, " does not share that much"));
  return locateIn(step, place.peer, in, place.offset, range);
}

Status Machine::locatePublished(const Step& step, const plan::Place& place, Range* range) {
  if (place.peer >= lanes_.ranks()) return violation(step, "reads what nobody published");
  const bool rings = lanes_.planOf(step.lane).inRing;
  const Part part = rings ? ofRing(step.lane, place.peer) : Part{0, job_.target.bytesPerRegion()};
  if (place.offset < part.begin || !fits(place.offset, step.bytes, part.begin + part.bytes))
    return violation(step, "lies outside of what its rank publishes");
  *range = rings ? inRings(place.peer, step, place.offset)
                 : Range{&publishedOf(place.peer, step.lane),
                         static_cast<std::uint32_t>(place.offset), step.bytes};
  return {};
}

Status Machine::touch(const Step& step, const Range& range, bool write) {
  const auto open = range.memory->history.touch(range.begin, range.begin + range.bytes,
                                                {step.lane, step.number, step.put}, write, order_,
                                                order_.of(step.lane));
  if (!open) return {};
  return violation(step, text("its ", write ? "write" : "read", " races with the ",
                              open->write ? "write" : "read", " by ", describe(open->access)));
}

Status Machine::read(const Step& step, const plan::Place& place, Pieces* pieces) {
  Range range;
  WEFT_TRY(locate(step, place, &range));
  WEFT_TRY(touch(step, range, false));
  std::uint32_t missing = 0;
  if (!range.memory->values.read(range.begin, range.bytes, *pieces, missing))
    return violation(step, "reads bytes that were never written");
  for (const Piece& p : *pieces)
    if (p.value.pending) return violation(step, "reads undefined bytes of an arrival slot");
  return {};
}

Status Machine::write(const Step& step, const Range& range, const Pieces& pieces) {
  WEFT_TRY(touch(step, range, true));
  range.memory->values.write(range.begin, pieces);
  return {};
}

std::string Machine::describe(const Access& access) const {
  if (access.actor < lanes_.count()) return lanes_.where(access.actor, access.step);
  return text("the caller of rank ", access.actor - lanes_.count());
}

Status Machine::checkEnd() const {
  for (const Sent& sent : sent_)
    if (!order_.isAwaited(sent.put))
      return lanes_.violation(sent.lane, sent.step, "its arrival is never waited for");
  for (std::uint32_t c = 0; c < buffers_.size(); ++c) {
    if (job_.calls[c].isRefused()) continue;
    for (std::uint32_t r = 0; r < lanes_.ranks(); ++r) {
      const std::string wrong = buffers_[c].check(r);
      const std::uint32_t last = lanes_.laneOf(lanes_.firstOf(c + 1) - 1, r);
      if (!wrong.empty()) return lanes_.violation(last, lanes_.length(last), wrong);
    }
  }
  return {};
}

}  // namespace weft::verify
