// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "schedule/ir.h"
#include "transports/mapped/doorbell.h"

namespace weft {

static_assert(kParities == kReuseDepth,
              "the engine keeps as many invocations in flight as the verifier proves");

Executor::Executor(Transport& transport, Watch& watch, std::uint32_t rank, const WaitTuning& tuning,
                   std::uint32_t lanes)
    : transport_(transport),
      watch_(watch),
      layout_(transport.layout()),
      rank_(rank),
      tuning_(tuning),
      lanesInFlight_(std::min(lanes, kParities)),
      polls_(transport.caps().polls),
      own_(transport.own()),
      waiter_(tuning_, own_.control(), !polls_),
      cells_(own_.cells()),
      completedBy_(layout_.ranks, 0),
      peers_(transport),
      compute_(peers_, layout_.ranks) {
  for (std::uint32_t r = 0; r < layout_.ranks; ++r) {
    controls_.push_back(transport.control(r));
    toldTo_.push_back(transport.isMirrored(r) ? 0 : kNoNeed);
  }
  transport_.leave();  // until the first run
}

Status Executor::run(const Launch& launch) {
  const Attendance attendance(transport_);
  launch_ = &launch;
  refused_ = false;
  entry_ = peers_.enter(*launch.plan, launch.in, launch.out);
  WEFT_TRY(runPlan(*launch.plan, launch));
  if (!refused_) return {};
  const Plan& otherwise = *launch.plan->otherwise;
  entry_ = peers_.enter(otherwise, launch.in, launch.out);
  return runPlan(otherwise, launch);
}

Status Executor::runPlan(const Plan& plan, const Launch& launch) {
  plan_ = &plan;
  waiter_.progressed();
  std::uint64_t opened = 0;
  std::uint64_t closed = 0;
  const std::uint64_t segments = plan_->segments;
  const std::uint64_t firstEpoch = lastEpoch_ + 1;
  lastEpoch_ += segments;
  while (closed < segments) {
    bool moved = false;
    for (std::uint64_t s = closed; s < segments && s < closed + lanesInFlight_; ++s) {
      Lane& lane = lanes_[(firstEpoch + s) % kParities];
      if (s == opened) {
        lane.epoch = firstEpoch + s;
        open(lane, launch, s);
        ++opened;
      }
      if (!lane.active) continue;
      const Step step = advance(lane);
      if (step == Step::Broken) return std::exchange(broken_, {});
      moved = moved || step != Step::Blocked;
    }
    while (closed < opened && !lanes_[(firstEpoch + closed) % kParities].active) ++closed;
    if (polls_) {
      tellWriters();
      WEFT_TRY(pollTransport());
    }
    if (moved)
      waiter_.progressed();
    else
      WEFT_TRY(idle());
  }
  return polls_ ? drain() : Status();
}

// Nobody polls between calls: what the peers still wait for leaves now.
Status Executor::drain() {
  tellWriters();
  while (transport_.outstanding() != 0) {
    WEFT_TRY(pollTransport());
    WEFT_TRY(idle());
  }
  return {};
}

// Early enough: a writer that knows all but the last invocation has three more to go on with.
void Executor::tellWriters() {
  for (const std::uint32_t writer : plan_->writers) {
    if (toldTo_[writer] == kNoNeed || completed_ <= toldTo_[writer] + 1) continue;
    if (transport_.tell(writer, completed_)) toldTo_[writer] = completed_;
  }
}

void Executor::open(Lane& lane, const Launch& launch, std::uint64_t segment) {
  lane.shift = segment * plan_->segmentBytes;
  lane.next = 0;
  lane.pending = 0;
  lane.parity = static_cast<std::uint32_t>(lane.epoch % kParities);
  lane.active = true;
  // An absent buffer is never touched; its shifted address is never formed.
  lane.base[static_cast<unsigned>(Base::In)] =
      launch.in ? const_cast<std::byte*>(launch.in) + lane.shift : nullptr;
  lane.base[static_cast<unsigned>(Base::Out)] = launch.out ? launch.out + lane.shift : nullptr;
  lane.base[static_cast<unsigned>(Base::Arena)] = own_.arena() + lane.parity * layout_.arenaBytes;
  lane.base[static_cast<unsigned>(Base::Cells)] =
      reinterpret_cast<std::byte*>(cells_ + lane.parity * layout_.tags);
}

// Runs the lane until an op must wait.
Executor::Step Executor::advance(Lane& lane) {
  const std::uint32_t before = lane.next;
  const std::uint32_t end = static_cast<std::uint32_t>(plan_->ops.size());
  while (lane.next < end) {
    const Step step = runOp(lane, plan_->ops[lane.next]);
    if (step == Step::Broken) return step;
    if (step == Step::Blocked) return lane.next == before ? Step::Blocked : Step::Moved;
    ++lane.next;
    if (lane.next <= plan_->opening && openBuffers(lane) == Step::Broken) return Step::Broken;
  }
  if (lane.pending != 0) return lane.next == before ? Step::Blocked : Step::Moved;
  close(lane);
  return Step::Done;
}

// The opening of a plan on shared buffers. A rank whose own are not shared tells so and goes on to
// the other plan; the others go there once they have heard of it. So all ranks run the same one,
// and only those that may gain by it wait. Signals that are on their way meanwhile do no harm: only
// their sender writes to their cells, in order.
Executor::Step Executor::openBuffers(Lane& lane) {
  const std::uint32_t end = static_cast<std::uint32_t>(plan_->ops.size());
  if (lane.next == plan_->tells && entry_.willing == 0) refused_ = true;
  for (std::uint32_t i = plan_->tells; lane.next == plan_->opening && i < lane.next; ++i) {
    const BoundOp& wait = plan_->ops[i];
    Entry theirs;
    std::memcpy(&theirs, cell(lane, wait.tag).inlined, sizeof(theirs));
    refused_ = refused_ || theirs.willing == 0;
    if (!refused_ && !peers_.admit(wait.peer, theirs)) {
      broken_ = Status::error(Code::InternalError,
                              text("rank ", wait.peer, " shares memory that is not in its heap"));
      return Step::Broken;
    }
  }
  if (refused_) lane.next = end;
  return Step::Moved;
}

Executor::Step Executor::runOp(Lane& lane, const BoundOp& op) {
  if (op.drain && lane.pending != 0) return Step::Blocked;
  switch (op.kind) {
    case BoundOp::Kind::Put:
    case BoundOp::Kind::PutInCell:
    case BoundOp::Kind::PutDirect:
    case BoundOp::Kind::Raise:
    case BoundOp::Kind::Signal:
      return put(lane, op);
    case BoundOp::Kind::Wait:
      return wait(lane, op);
    default:
      return compute(lane, op);
  }
}

// May epoch `epoch` write into `peer`'s slots, which e - kParities used before?
bool Executor::mayPut(std::uint32_t peer, std::uint64_t epoch) {
  if (completedBy_[peer] + kParities >= epoch) return true;
  if (controls_[peer] == nullptr) return false;
  completedBy_[peer] = controls_[peer]->completed.load(std::memory_order_acquire);
  return completedBy_[peer] + kParities >= epoch;
}

Executor::Step Executor::put(Lane& lane, const BoundOp& op) {
  if (!mayPut(op.peer, lane.epoch)) return Step::Blocked;
  Put put;
  put.peer = op.peer;
  put.cell = layout_.cells() + (lane.parity * layout_.tags + op.tag) * sizeof(Cell);
  put.word = arrivalWord(lane.epoch, completed_);
  put.stamp = plan_->fingerprint;
  put.cookie = lane.parity;
  if (op.kind == BoundOp::Kind::Signal) {
    put.src = reinterpret_cast<const std::byte*>(&entry_);
    put.bytes = plan_->opening != 0 ? sizeof(entry_) : sizeof(entry_.out);
    put.target = kInCell;
  } else if (op.kind == BoundOp::Kind::Raise) {
    put.target = kInCell;
  } else {
    put.src = at(lane, op.src);
    put.bytes = length(lane, op);
    put.target = kInCell;
  }
  if (op.kind == BoundOp::Kind::Put) {
    put.target = layout_.arena() + lane.parity * layout_.arenaBytes + op.dst.offset;
  } else if (op.kind == BoundOp::Kind::PutDirect) {
    std::uint64_t address = 0;
    std::memcpy(&address, cell(lane, op.grant).inlined, sizeof(address));
    put.target = address + op.dst.offset + lane.shift;
    put.direct = true;
  }
  switch (transport_.put(put)) {
    case PutResult::Pending:
      ++lane.pending;
      [[fallthrough]];
    case PutResult::Done:
      if (op.kind != BoundOp::Kind::Signal) count(put.bytes);
      if (toldTo_[op.peer] != kNoNeed)
        toldTo_[op.peer] = std::max(toldTo_[op.peer], completedOf(put.word));
      return Step::Moved;
    case PutResult::Again:
      return Step::Blocked;
    default:
      broken_ = Status::error(Code::RemoteError, transport_.lastError());
      return Step::Broken;
  }
}

Executor::Step Executor::wait(Lane& lane, const BoundOp& op) {
  const Cell& arrival = cell(lane, op.tag);
  const std::uint64_t word = arrival.word.load(std::memory_order_acquire);
  if (epochOf(word) != lane.epoch) return Step::Blocked;
  if (arrival.stamp != plan_->fingerprint) {
    broken_ = watch_.disagreement(op.peer);
    return Step::Broken;
  }
  if (completedOf(word) > completedBy_[op.peer]) completedBy_[op.peer] = completedOf(word);
  return Step::Moved;
}

Executor::Step Executor::compute(const Lane& lane, const BoundOp& op) {
  const Compute::Frame frame{*plan_, lane.base, launch_->scalar, launch_->kernel, lane.shift};
  const std::uint64_t bytes = length(lane, op);
  if (op.crossings != 0) count(op.crossings * bytes);
  if (compute_.run(frame, op, bytes)) return Step::Moved;
  broken_ = Status::error(Code::RemoteError, transport_.lastError());
  return Step::Broken;
}

// Invocations complete in order: a later one that is done first waits for its turn.
void Executor::close(Lane& lane) {
  lane.active = false;
  const std::uint64_t before = completed_;
  while (completed_ < lastEpoch_) {
    const Lane& next = lanes_[(completed_ + 1) % kParities];
    if (next.epoch != completed_ + 1 || next.active) break;
    ++completed_;
  }
  if (completed_ == before) return;
  own_.control().completed.store(completed_, std::memory_order_release);
  for (std::uint32_t r = 0; r < layout_.ranks; ++r) {
    if (r != rank_ && controls_[r] && controls_[r]->sleeping.load(std::memory_order_relaxed) != 0)
      transport_.wake(r);
  }
}

Status Executor::pollTransport() {
  Event events[16];
  const int n = transport_.poll(events, 16);
  for (int i = 0; i < n; ++i) {
    if (events[i].kind != Event::PutDone)
      return Status::error(Code::RemoteError, transport_.lastError());
    --lanes_[events[i].cookie].pending;
  }
  return {};
}

// Could the lane do something now?
bool Executor::ready(const Lane& lane) {
  if (!lane.active || lane.next == plan_->ops.size()) return false;
  const BoundOp& op = plan_->ops[lane.next];
  if (op.kind == BoundOp::Kind::Wait) return arrived(lane, op);
  return mayPut(op.peer, lane.epoch);
}

// Is any rank whose word is missing now on this core?
bool Executor::awaitedHere(const Seat& seat) const {
  for (const Lane& lane : lanes_) {
    if (!lane.active) continue;
    for (std::size_t i = lane.next; i < plan_->ops.size(); ++i) {
      const BoundOp& op = plan_->ops[i];
      const bool waits = op.kind == BoundOp::Kind::Wait;
      if (!waits && i != lane.next) break;
      if (waits && arrived(lane, op)) continue;
      if (seat.isShared(controls_[op.peer])) return true;
    }
  }
  return false;
}

Status Executor::idle() {
  const Waiter::Advice advice =
      waiter_.pause([this](const Seat& seat) { return awaitedHere(seat); });
  if (advice == Waiter::Advice::Poll) return {};
  std::uint32_t waitingFor = rank_;
  for (const Lane& lane : lanes_) {
    if (lane.active && lane.next < plan_->ops.size()) waitingFor = plan_->ops[lane.next].peer;
  }
  WEFT_TRY(watch_.trouble(waitingFor));
  if (advice != Waiter::Advice::Sleep) return {};
  doorbellWait(own_.control(), waiter_.sleepTime(), [this] {
    for (const Lane& lane : lanes_) {
      if (ready(lane)) return true;
    }
    return false;
  });
  return {};
}

}  // namespace weft
