// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/copy.h"
#include "base/mark.h"
#include "base/text.h"

namespace weft::engine {
namespace {

std::uint64_t monotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Executor::Executor(transport::Transport& transport, watch::Watch& watch, std::uint32_t rank,
                   const WaitTuning& tuning, std::uint32_t lanes, const Crew& crew)
    : transport_(transport),
      watch_(watch),
      layout_(transport.layout()),
      rank_(rank),
      tuning_(tuning),
      lanesInFlight_(std::min(lanes, transport::kMaxLanes)),
      own_(transport.own()),
      arrivals_(own_.arrivals()),
      ring_(own_.pairArrivals()),
      arena_(layout_.arena()),
      ringArena_(layout_.ringArena()),
      published_(layout_.published()),
      progress_(transport, watch, tuning_),
      completedBy_(layout_.ranks, 0),
      footprint_(transport, rank),
      peers_(transport),
      compute_(peers_, layout_.ranks, crew) {
  for (std::uint32_t r = 0; r < layout_.ranks; ++r) {
    controls_.push_back(transport.control(r));
    toldTo_.push_back(transport.isMirrored(r) ? 0 : kNoNeed);
    if (r != rank && controls_[r] != nullptr && !transport.isMirrored(r))
      onlookers_.push_back({controls_[r], r});
  }
  own_.control().completed.store(completed_, std::memory_order_release);
  transport_.releaseProgress();  // until the first run
}

Status Executor::run(const Launch& launch) {
  std::optional<transport::ProgressOwnership> ownership;  // nobody else makes it elsewhere
  if (progress_.polls()) ownership.emplace(transport_);
  if (told_ != completed_) tellCompleted();
  const TeamCompute::Run run(compute_, *launch.plan, launch.epilogue);
  launch_ = &launch;
  const plan::Plan* plan = nullptr;
  Status status;
  do {
    plan = plan == nullptr ? launch.plan : plan->otherwise.get();
    status = runPlan(*plan, launch);
  } while (refused_ && status.ok());
  ranOther_ = plan != launch.plan;
  if (!status.ok()) [[unlikely]]
    return progress_.abandon(std::move(status));
  return status;
}

inline Status Executor::runPlan(const plan::Plan& plan, const Launch& launch) {
  WEFT_TRY(footprint_.cover(plan));
  plan_ = &plan;
  refused_ = false;
  entry_ = peers_.enter(plan, launch.in, launch.out);
  progress_.begin();
  WEFT_TRY(plan.segments == 1 ? runOne(launch) : runLanes(launch));
  return progress_.polls() ? drain() : Status();
}

bool Executor::mayRunAgain(const plan::Plan& plan) const {
  return plan.inRing && plan.segments == 1 && plan.opening == 0 && !progress_.polls() &&
         trace_ == nullptr && compute_.work().members() == 1;
}

// Most of such calls never wait: ops run without a lane, up to the first that must.
Status Executor::runAgain(const plan::Plan& plan, const std::byte* in, std::byte* out) {
  const Launch launch{.plan = &plan};
  plan_ = &plan;
  launch_ = &launch;
  const Frame frame = frameOf(++lastEpoch_, in, out, 0);
  const plan::BoundOp* const end = plan.ops.data() + plan.ops.size();
  std::uint32_t pending = 0;
  for (const plan::BoundOp* op = plan.ops.data(); op != end; ++op) {
    const Step step = runOp(frame, *op, &pending);
    if (step == Step::Moved) [[likely]]
      continue;
    if (step == Step::Broken) return progress_.abandon(std::exchange(broken_, {}));
    return goOn(frame, static_cast<std::uint32_t>(op - plan.ops.data()));
  }
  completed_ = frame.epoch;
  const std::uint32_t between =
      std::max(plan.depth / kTellings, 1u);  // of a power of two, as the ring is
  if ((frame.epoch & (between - 1)) == 0) tellCompleted();
  return {};
}

Status Executor::goOn(const Frame& frame, std::uint32_t op) {
  Lane& lane = laneOf(frame.epoch);
  lane = {frame, op};
  lane.active = true;
  tellCompleted();
  progress_.begin();
  Status status = finish(lane);
  return status.ok() ? status : progress_.abandon(std::move(status));
}

// One segment: there is no other lane to turn to.
inline Status Executor::runOne(const Launch& launch) {
  Status status = finish(open(++lastEpoch_, launch, 0));
  if (!plan_->inRing && !progress_.polls() && plan_->ops.size() <= kFewOps)
    for (const plan::BoundOp& op : plan_->ops) expectPut(op, lastEpoch_ + 1);
  return status;
}

// The same call is likely the next. The lines that its put goes to are the peer's, which has read the last one
// there, and take as long to come back as the message will take to come. In a ring they are asked for at once; else
// when the call is over, as peers that still wait would be held up.
inline void Executor::expectPut(const plan::BoundOp& op, std::uint64_t epoch) {
  using Kind = plan::BoundOp::Kind;
  if (op.kind > Kind::Signal || op.kind == Kind::Store || !hasCredit(op.peer, epoch)) return;
  const bool lands = op.kind == Kind::Put;
  transport_.expectPut(op.peer, offsetOf(arrivalsOf(epoch) + op.arrival),
                       lands ? landingAt(epoch) + op.dst.offset : transport::kInlined,
                       lands ? std::min(op.max, op.limit) : 0);
}

inline Status Executor::finish(Lane& lane) {
  for (;;) {
    const Step step = advance(lane);
    if (step == Step::Broken) return std::exchange(broken_, {});
    if (progress_.polls()) WEFT_TRY(poll());
    if (!lane.active) return {};
    WEFT_TRY(step == Step::Moved ? progress_.moved() : progress_.idle(*this));
  }
}

Status Executor::runLanes(const Launch& launch) {
  const std::uint64_t first = lastEpoch_ + 1;
  std::uint64_t opened = first, closed = first;  // the next of each
  lastEpoch_ += plan_->segments;
  while (closed <= lastEpoch_) {
    bool moved = false;
    for (std::uint64_t e = closed; e <= lastEpoch_ && e < closed + lanesInFlight_; ++e) {
      if (e == opened && !mayOpen(e, first)) break;
      if (e == opened) open(opened++, launch, e - first);
      if (!laneOf(e).active) continue;
      const Step step = advance(laneOf(e));
      if (step == Step::Broken) return std::exchange(broken_, {});
      moved = moved || step != Step::Blocked;
    }
    while (closed < opened && !laneOf(closed).active) ++closed;
    if (progress_.polls()) WEFT_TRY(poll());
    WEFT_TRY(moved ? progress_.moved() : progress_.idle(*this));
  }
  return {};
}

Status Executor::poll() {
  tellWriters();
  return progress_.poll([this](std::uint64_t cookie) { forget(cookie); });
}

Status Executor::drain() {
  tellWriters();
  return progress_.drain(*this, [this](std::uint64_t cookie) { forget(cookie); });
}

// Early enough: a writer that knows all but the last invocation has three more to go on with.
void Executor::tellWriters() {
  for (const std::uint32_t writer : plan_->writers) {
    if (toldTo_[writer] == kNoNeed || completed_ <= toldTo_[writer] + 1) continue;
    if (transport_.tell(writer, completed_)) toldTo_[writer] = completed_;
  }
}

bool Executor::mayOpen(std::uint64_t epoch, std::uint64_t first) {
  if (epoch == first) return true;
  const Lane& before = laneOf(epoch - 1);
  return !before.active || before.next >= plan_->lead;
}

Executor::Lane& Executor::open(std::uint64_t epoch, const Launch& launch, std::uint64_t segment) {
  Lane& lane = laneOf(epoch);
  lane = {frameOf(epoch, launch.in, launch.out, segment)};
  lane.active = true;
  return lane;
}

inline Executor::Frame Executor::frameOf(std::uint64_t epoch, const std::byte* in, std::byte* out,
                                         std::uint64_t segment) const {
  const auto index = static_cast<std::uint32_t>(epoch % transport::kMaxLanes);
  const std::uint64_t shift = segment * plan_->segmentBytes;
  std::byte* const arena = own_.base() + arena_ + index * layout_.arenaBytes;
  // By Base. An absent buffer is never touched; its shifted address is never formed.
  return {.epoch = epoch,
          .shift = shift,
          .index = index,
          .base = {in ? const_cast<std::byte*>(in) + shift : nullptr, out ? out + shift : nullptr,
                   arena, reinterpret_cast<std::byte*>(arrivalsOf(epoch)),
                   own_.base() + landingAt(epoch)}};
}

// Messages of a short rooted call have room in the arena of the rings.
inline std::uint64_t Executor::landingAt(std::uint64_t epoch) const {
  if (!plan_->inRing) return arena_ + epoch % transport::kMaxLanes * layout_.arenaBytes;
  return ringArena_ + (epoch & (plan_->depth - 1)) * plan_->stageBytes;
}

std::uint64_t Executor::landingOf(const Frame& frame) const {
  return static_cast<std::uint64_t>(frame.base[static_cast<unsigned>(plan::Base::Ring)] -
                                    own_.base());
}

std::uint64_t Executor::publishedOf(const Frame& frame) const {
  return plan_->inRing ? landingOf(frame) : published_ + frame.index * layout_.publishedBytes();
}

transport::ArrivalSlot* Executor::arrivalsOf(std::uint64_t epoch) const {
  return plan_->inRing ? ring_ + (epoch & (layout_.ring - 1))  // of a power of two
                       : arrivals_ + epoch % transport::kMaxLanes * layout_.arrivalSlots;
}

// Runs the lane until an op must wait.
Executor::Step Executor::advance(Lane& lane) {
  const std::uint32_t before = lane.next;
  const std::uint32_t end = static_cast<std::uint32_t>(plan_->ops.size());
  if (trace_ != nullptr) comeTo(lane);
  while (lane.next < end) {
    const plan::BoundOp& op = plan_->ops[lane.next];
    const Step step = runOp(lane, op, &lane.pending);
    if (step == Step::Broken) return step;
    if (step == Step::Blocked) return lane.next == before ? Step::Blocked : Step::Moved;
    if (trace_ != nullptr) trace(lane, op);
    ++lane.next;
    if (lane.next <= plan_->opening && openBuffers(lane) == Step::Broken) return Step::Broken;
  }
  if (lane.pending != 0) return lane.next == before ? Step::Blocked : Step::Moved;
  close(lane);
  return Step::Moved;
}

// An op begins when it is first tried, not when the op before it was done: in between another lane may
// have had the core.
void Executor::comeTo(Lane& lane) const {
  if (lane.since == 0 || lane.next != lane.tried) lane.since = monotonicNs();
  lane.tried = lane.next;
}

void Executor::trace(Lane& lane, const plan::BoundOp& op) const {
  using Kind = plan::BoundOp::Kind;
  const bool isOfOneRank = op.kind >= Kind::Copy;
  const bool isEmpty = op.kind == Kind::Wait || op.kind == Kind::Raise || op.kind == Kind::Signal;
  const std::uint64_t now = monotonicNs();
  trace_->add({.beginNs = lane.since,
               .endNs = now,
               .bytes = isEmpty ? 0 : length(lane, op),
               .segment = lane.shift == 0
                              ? 0
                              : static_cast<std::uint32_t>(lane.shift / plan_->segmentBytes),
               .op = lane.next,
               .lane = lane.index,
               .kind = static_cast<int>(op.kind),
               .peer = static_cast<int>(isOfOneRank ? rank_ : op.peer)});
  lane.since = now;
  lane.tried = lane.next + 1;
}

// The opening of a plan on shared buffers. A rank whose own are not shared tells so and goes on to
// the other plan; the others go there once they have heard of it. So all ranks run the same one,
// and only those that may gain by it wait. Signals that are on their way meanwhile do no harm: only
// their sender writes to their arrival slots, in order.
Executor::Step Executor::openBuffers(Lane& lane) {
  const std::uint32_t end = static_cast<std::uint32_t>(plan_->ops.size());
  if (lane.next == plan_->tells && entry_.willing == 0) refused_ = true;
  for (std::uint32_t i = plan_->tells; lane.next == plan_->opening && i < lane.next; ++i) {
    const plan::BoundOp& wait = plan_->ops[i];
    Entry theirs;
    std::memcpy(&theirs, arrivalAt(lane, wait.arrival).inlined, sizeof(theirs));
    refused_ = refused_ || theirs.willing == 0;
    if (!refused_ && !peers_.admit(wait.peer, theirs)) {
      broken_ = Status::error(Code::InternalError, "rank ", wait.peer,
                              " shares memory that is not in its heap");
      return Step::Broken;
    }
  }
  if (refused_ && WEFT_MARK("a buffer is not shared: staged")) lane.next = end;
  return Step::Moved;
}

inline Executor::Step Executor::runOp(const Frame& frame, const plan::BoundOp& op,
                                      std::uint32_t* pending) {
  if (op.drain && *pending != 0) return Step::Blocked;
  switch (op.kind) {
    case plan::BoundOp::Kind::Put:
    case plan::BoundOp::Kind::PutInline:
    case plan::BoundOp::Kind::PutDirect:
    case plan::BoundOp::Kind::Raise:
    case plan::BoundOp::Kind::Signal:
      return put(frame, op, pending);
    case plan::BoundOp::Kind::Wait:
      return wait(frame, op);
    case plan::BoundOp::Kind::Publish:
      return mayPublish(frame.epoch) ? compute(frame, op) : Step::Blocked;
    default:
      return compute(frame, op);
  }
}

// May epoch `epoch` write into `peer`'s slots, which an earlier one used before?
bool Executor::mayPut(std::uint32_t peer, std::uint64_t epoch) {
  if (hasCredit(peer, epoch)) return true;
  if (controls_[peer] == nullptr) return false;
  completedBy_[peer] = controls_[peer]->completed.load(std::memory_order_acquire);
  return hasCredit(peer, epoch);
}

// May it write what peers read, and have read in an earlier one?
bool Executor::mayPublish(std::uint64_t epoch) {
  return std::ranges::all_of(plan_->readers,
                             [&](std::uint32_t reader) { return mayPut(reader, epoch); });
}

// All fields at once: one that is set to nothing first would be loaded after two stores, and so wait for all
// that came before them.
inline transport::Put Executor::messageOf(const Frame& frame, const plan::BoundOp& op) const {
  using Kind = plan::BoundOp::Kind;
  // All windows have one layout.
  const transport::ArrivalSlot* const slot = &arrivalAt(frame, op.arrival);
  const std::byte* src = nullptr;
  std::uint64_t bytes = 0, target = transport::kInlined;
  if (op.kind == Kind::Signal) {
    src = reinterpret_cast<const std::byte*>(&entry_);
    bytes = plan_->opening != 0 ? sizeof(entry_) : sizeof(entry_.out);
  } else if (op.kind != Kind::Raise) {
    src = at(frame, op.src);
    bytes = length(frame, op);
  }
  if (op.kind == Kind::Put) {
    target = landingOf(frame) + op.dst.offset;
  } else if (op.kind == Kind::PutDirect) {
    std::memcpy(&target, arrivalAt(frame, op.clearToSend).inlined, sizeof(target));
    target += op.dst.offset + frame.shift;
  }
  return {.peer = op.peer,
          .arrival = offsetOf(slot),
          .flag = transport::arrivalFlag(frame.epoch, completed_),
          .tag = watch_.tag(),
          .src = src,
          .bytes = bytes,
          .target = target,
          .direct = op.kind == Kind::PutDirect,
          .cookie = frame.index};
}

// Once a call has failed, buffers belong to their callers again: a rank that was stopped since then
// must leave them alone when it goes on.
bool Executor::mayTouchPeers() {
  broken_ = progress_.interruption();
  return broken_.ok();
}

void Executor::noteSent(const plan::BoundOp& op, const transport::Put& put) {
  if (op.kind != plan::BoundOp::Kind::Signal) count(put.bytes);
  if (toldTo_[op.peer] != kNoNeed)
    toldTo_[op.peer] = std::max(toldTo_[op.peer], transport::completedOf(put.flag));
}

void Executor::advance(transport::Put* put, std::uint64_t bytes) {
  count(bytes);
  put->src += bytes;
  put->target += bytes;
  put->bytes -= bytes;
}

// The first `bytes` of what the put would copy, by all threads, where the peer is of this host; into
// memory that is not mapped here, by CMA. Nothing elsewhere, or where one thread is as good.
std::optional<bool> Executor::copyByTeam(transport::Put* put, std::uint64_t bytes) {
  if (!compute_.work().hasTeam() || put->target == transport::kInlined) return {};
  const transport::WindowView window = transport_.view(put->peer);
  if (!window) return {};
  const bool maps = !put->direct || transport_.caps().sharesAll;
  std::byte* const to =
      put->direct ? reinterpret_cast<std::byte*>(put->target) : window.base() + put->target;
  const std::optional<bool> done =
      compute_.work().copy(bytes, [&](std::uint64_t from, std::uint64_t end) {
        if (!maps)
          return transport_.putTo(put->peer, put->target + from, put->src + from, end - from);
        copyBytes(to + from, put->src + from, end - from);
        return true;
      });
  if (done == true) advance(put, bytes);
  return done;
}

// A direct put may be as long as the message. All of it but the last piece, unless the call ends.
bool Executor::copyAhead(transport::Put* put) {
  const std::uint64_t piece = tuning_.uninterrupted;
  while (mayTouchPeers() && put->bytes != 0) {
    std::optional<bool> done = copyByTeam(put, std::min(piece, put->bytes));
    if (done == true) continue;
    if (!done && put->bytes <= piece) return true;
    if (!done) done = transport_.putTo(put->peer, put->target, put->src, piece);
    if (done == false) {
      broken_ = transport_.lastError();
      return false;
    }
    advance(put, piece);
  }
  return broken_.ok();
}

inline Executor::Step Executor::put(const Frame& frame, const plan::BoundOp& op,
                                    std::uint32_t* pending) {
  if (!mayPut(op.peer, frame.epoch)) return Step::Blocked;
  transport::Put put = messageOf(frame, op);
  if (put.direct && !copyAhead(&put)) return Step::Broken;
  if (!put.direct && compute_.work().hasTeam()) (void)copyByTeam(&put, put.bytes);
  const transport::PutResult result = transport_.put(put);
  if (plan_->inRing) expectPut(op, frame.epoch + 1);
  switch (result) {
    case transport::PutResult::Pending:
      ++*pending;
      [[fallthrough]];
    case transport::PutResult::Done:
      noteSent(op, put);
      return Step::Moved;
    case transport::PutResult::Again:
      return Step::Blocked;
    default:
      broken_ = transport_.lastError();
      return Step::Broken;
  }
}

inline Executor::Step Executor::wait(const Frame& frame, const plan::BoundOp& op) {
  const transport::ArrivalSlot& arrival = arrivalAt(frame, op.arrival);
  const std::uint64_t flag = arrival.flag.load(std::memory_order_acquire);
  if (transport::epochOf(flag) != frame.epoch) return Step::Blocked;
  if (arrival.tag != watch_.tag()) {
    broken_ = watch_.disagreement(op.peer);
    return Step::Broken;
  }
  if (transport::completedOf(flag) > completedBy_[op.peer])
    completedBy_[op.peer] = transport::completedOf(flag);
  return Step::Moved;
}

// Between places that need no look at whose they are, or how they are reached.
bool Executor::isPlainCopy(const plan::BoundOp& op) {
  const bool copies =
      op.kind == plan::BoundOp::Kind::Copy || op.kind == plan::BoundOp::Kind::Publish;
  return copies && op.crossings == 0 && !op.stream;
}

const std::byte* Executor::source(const Frame& frame, const plan::Place& place) const {
  if (place.base != plan::Base::Published) return at(frame, place);
  return transport_.mapped(place.peer) + publishedOf(frame) + place.offset;
}

std::byte* Executor::target(const Frame& frame, const plan::Place& place) const {
  if (place.base != plan::Base::Published) return at(frame, place);
  return own_.base() + publishedOf(frame) + place.offset;
}

inline Executor::Step Executor::compute(const Frame& frame, const plan::BoundOp& op) {
  const std::uint64_t bytes = length(frame, op);
  if (bytes == 0) return Step::Moved;
  if (op.kind == plan::BoundOp::Kind::Publish) count(bytes * plan_->readers.size());
  if (isPlainCopy(op) && bytes < reduce::StoreChoice::kLeast) {
    // Where both are one place nothing is stored: peers may be reading it.
    copyBytes(target(frame, op.dst), source(frame, op.src), bytes);
    return Step::Moved;
  }
  return computeByPieces(frame, op, bytes);
}

Executor::Step Executor::computeByPieces(const Frame& frame, const plan::BoundOp& op,
                                         std::uint64_t bytes) {
  const Compute::Frame operands{*plan_,      frame.base,        launch_->scalar, launch_->epilogue,
                                frame.shift, publishedOf(frame)};
  if (op.crossings != 0) {
    if (!mayTouchPeers()) return Step::Broken;
    count(op.crossings * bytes);
  }
  const std::uint64_t piece = tuning_.uninterrupted;
  for (std::uint64_t from = 0; from < bytes; from += piece) {
    if (from != 0) broken_ = progress_.interruption();
    if (broken_.ok() && !compute_.run(operands, op, from, std::min(bytes, from + piece)))
      broken_ = transport_.lastError();
    if (!broken_.ok()) return Step::Broken;
  }
  return Step::Moved;
}

// Invocations complete in order: a later one that is done first waits for its turn.
void Executor::close(Lane& lane) {
  lane.active = false;
  const std::uint64_t before = completed_;
  while (completed_ < lastEpoch_) {
    const Lane& next = lanes_[(completed_ + 1) % transport::kMaxLanes];
    if (next.epoch != completed_ + 1 || next.active) break;
    ++completed_;
  }
  if (completed_ != before) tellCompleted();
}

inline void Executor::tellCompleted() {
  told_ = completed_;
  own_.control().completed.store(completed_, std::memory_order_release);
  transport::Sleepers sleepers;
  for (const Onlooker& onlooker : onlookers_)
    if (sleepers.include(*onlooker.page)) [[unlikely]]
      transport_.wake(onlooker.rank);
}

// Could the lane do something now?
bool Executor::ready(const Lane& lane) {
  if (!lane.active || lane.next == plan_->ops.size()) return false;
  const plan::BoundOp& op = plan_->ops[lane.next];
  if (op.kind == plan::BoundOp::Kind::Wait) return arrived(lane, op);
  if (op.kind == plan::BoundOp::Kind::Publish) return mayPublish(lane.epoch);
  return mayPut(op.peer, lane.epoch);
}

bool Executor::ready() {
  return std::ranges::any_of(lanes_, [this](const Lane& lane) { return ready(lane); });
}

// Is any rank whose arrival is missing now on this core?
bool Executor::awaitsHere(const Seat& seat) const {
  return std::ranges::any_of(lanes_, [&](const Lane& lane) { return awaitsHere(lane, seat); });
}

bool Executor::awaitsHere(const Lane& lane, const Seat& seat) const {
  if (!lane.active) return false;
  for (std::size_t i = lane.next; i < plan_->ops.size(); ++i) {
    const plan::BoundOp& op = plan_->ops[i];
    const bool waits = op.kind == plan::BoundOp::Kind::Wait;
    if (!waits && i != lane.next) return false;
    if (waits && arrived(lane, op)) continue;
    if (seat.isShared(controls_[peerOf(lane, op)])) return true;
  }
  return false;
}

std::uint32_t Executor::peerOf(const Lane& lane, const plan::BoundOp& op) const {
  if (op.kind != plan::BoundOp::Kind::Publish) return op.peer;
  const auto isBehind = [&](std::uint32_t reader) { return !hasCredit(reader, lane.epoch); };
  const auto first = std::ranges::find_if(plan_->readers, isBehind);
  return first != plan_->readers.end() ? *first : op.peer;
}

std::uint32_t Executor::waitingFor() const {
  std::uint32_t peer = rank_;
  for (const Lane& lane : lanes_)
    if (lane.active && lane.next < plan_->ops.size()) peer = peerOf(lane, plan_->ops[lane.next]);
  return peer;
}

}  // namespace weft::engine
