// SPDX-License-Identifier: Apache-2.0
#include "plan/bind.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "transports/window.h"

namespace weft::plan {
namespace {

constexpr std::uint32_t kNobody = ~0u;

// What puts read of Out.
class Sources {
 public:
  explicit Sources(const std::vector<BoundOp>& ops) {
    using enum BoundOp::Kind;
    for (const BoundOp& op : ops)
      if ((op.kind == Put || op.kind == PutDirect || op.kind == Store) && op.src.base == Base::Out)
        runs_.push_back({op.src.offset, op.src.offset + op.max});
    std::ranges::sort(runs_);
    std::uint64_t end = 0;
    for (auto& run : runs_) end = run.second = std::max(end, run.second);  // of all up to this one
  }

  // Is any of what this op writes to Out among them?
  bool meet(const BoundOp& op) const {
    const std::pair<std::uint64_t, std::uint64_t> behind{op.dst.offset + op.max, 0};
    const auto after = std::ranges::lower_bound(runs_, behind);
    return after != runs_.begin() && std::prev(after)->second > op.dst.offset;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs_;  // by their starts
};

class Binder {
  using Kind = BoundOp::Kind;

 public:
  Binder(const schedule::Schedule& schedule, const Call& call, const BindTarget& target, Plan* plan)
      : schedule_(schedule),
        call_(call),
        target_(target),
        program_(schedule.program(target.rank)),
        staging_(schedule, target.rank, program_),
        layout_(cut()),
        plan_(plan),
        published_(staging_.slotsPerRegion(), false),
        lastSignal_(schedule.ranks, kNobody),
        readIn_(schedule.inChunks, 0),
        readOut_(schedule.outChunks, 0),
        readTmp_(schedule.tmpChunks, 0) {}

  Status run() {
    WEFT_TRY(checkFits());
    plan_->runsAhead = schedule::isRooted(schedule_.collective);
    chooseSlots();
    placeTmp();
    describe();
    plan_->ops.reserve(program_.ops.size());
    for (const schedule::Op& op : program_.ops) WEFT_TRY(bindOp(op));
    streamResults();
    if (schedule_.shared) openShared();
    if (schedule_.published) plan_->readers = peersOf(Kind::Raise);
    plan_->writers = peersOf(Kind::Wait);
    countCrossings();
    if (schedule_.isPaced) plan_->lead = opsUntilLastPut() / transport::kMaxLanes;
    return {};
  }

 private:
  std::uint32_t opsUntilLastPut() const {
    const auto isPut = [](const BoundOp& op) {
      return op.kind == Kind::Put || op.kind == Kind::PutInline || op.kind == Kind::PutDirect;
    };
    const auto last = std::find_if(plan_->ops.rbegin(), plan_->ops.rend(), isPut);
    return static_cast<std::uint32_t>(plan_->ops.rend() - last);
  }

  // Segments that a ring has room for; else such as what is staged of them keeps in the cache.
  ByteLayout cut() const {
    const transport::RingStages& ring = target_.ringStages;
    for (const transport::Stages* stages : {&ring.shorter, &ring.longer}) {
      if (stages->count == 0 || !mayGoInRing()) continue;
      const ByteLayout layout = cutFor(stages->bytes * schedule_.tmpChunks, 0);
      if (stagesFor(layout) == stages) return layout;
    }
    return cutFor(target_.budget.stagingBytes, target_.budget.longStagingBytes);
  }
  ByteLayout cutFor(std::uint64_t stagingBytes, std::uint64_t longStagingBytes) const {
    return {schedule_,
            call_,
            {target_.usedPerRegion(), stagingBytes, staging_.slotsPerRegion(), longStagingBytes}};
  }

  // There an invocation has one message of a pair.
  bool mayGoInRing() const {
    return target_.ring != 0 && schedule::isRooted(schedule_.collective) && !schedule_.shared &&
           staging_.arrivalsPerRegion() <= 1;
  }
  // Null: there is no room for it in a ring.
  const transport::Stages* stagesFor(const ByteLayout& layout) const {
    if (!mayGoInRing() || !standsAlone(layout)) return nullptr;
    const transport::RingStages& ring = target_.ringStages;
    const transport::Stages* const stages = ring.stagesFor(layout.stride());
    const std::uint64_t most = stages == &ring.longer ? kOverlap : 1;
    return layout.segments() <= most ? stages : nullptr;
  }

  // Ranks run ahead as far as there are slots.
  void chooseSlots() {
    if (mayGoInRing() && layout_.segments() == 1 && fitsInline(1)) return goInRing(target_.ring, 0);
    stages_ = stagesFor(layout_);
    if (stages_ != nullptr) goInRing(stages_->count, stages_->bytes);
  }

  void goInRing(std::uint32_t depth, std::uint64_t stageBytes) {
    plan_->inRing = true;
    plan_->depth = depth;
    plan_->stageBytes = stageBytes;
  }

  Status checkFits() const {
    const auto check = [&](std::uint64_t needs, std::uint64_t has, const char* what) -> Status {
      if (needs <= has) return {};
      return Status::error(Code::InvalidUsage, "algorithm ", schedule_.name, " needs ", needs, " ",
                           what, " from one rank to another on ", target_.ranks,
                           " ranks; there are ", has, "; fix: choose another algorithm");
    };
    if (!staging_.isTypical())
      return Status::error(Code::InternalError, "algorithm ", schedule_.name, ": rank ",
                           target_.rank, " is like none of its typical ranks");
    WEFT_TRY(check(staging_.arrivalsPerRegion(), target_.arrivalsPerRegion(), "arrival slots"));
    return check(staging_.slotsPerRegion() * layout_.stride(), target_.usedPerRegion(),
                 "bytes of staging memory");
  }

  // Tmp slots lie in the arena, in their writer's region, but for payloads that fit into their
  // arrival slot.
  void placeTmp() {
    for (std::uint32_t i = 0; i < schedule_.tmpChunks; ++i) {
      const StagingMap::Spot spot = staging_.tmp(i);
      tmp_.push_back(spot.writer == target_.rank ? inArena(spot.writer, spot.index)
                     : schedule_.published       ? published(spot.writer, spot.index)
                                                 : landing(spot.writer, spot.index));
    }
    for (const schedule::Op& op : program_.ops) {
      if (op.kind != schedule::OpKind::Wait || op.dst.buf != schedule::Buf::Tmp) continue;
      const std::uint32_t run = pieceOf(op);
      if (!fitsInline(run)) continue;
      for (std::uint32_t j = 0; j < op.chunks; ++j) {
        const std::uint64_t arrival =
            arrivalHere(op.dst + j / run * run) * sizeof(transport::ArrivalSlot);
        tmp_[op.dst.index + j] = {
            Base::Arrivals, 0,
            arrival + offsetof(transport::ArrivalSlot, inlined) + bytes(j % run)};
      }
    }
  }

  Place inArena(std::uint32_t writer, std::uint64_t slot) const {
    return {Base::Arena, 0, writer * target_.bytesPerRegion() + slot * layout_.stride()};
  }
  // Of what `writer` puts.
  Place landing(std::uint32_t writer, std::uint64_t slot) const {
    if (plan_->inRing) return {Base::Ring, 0, ringOf(writer) + slot * layout_.stride()};
    return inArena(writer, slot);
  }

  std::uint64_t ringOf(std::uint32_t writer) const {
    const transport::RingStages& ring = target_.ringStages;
    return writer * ring.bytes + (stages_ != nullptr ? ring.beginOf(*stages_) : 0);
  }

  // In a ring, where it would land, but at its writer.
  Place published(std::uint32_t writer, std::uint64_t slot) const {
    const std::uint64_t ofWriter = plan_->inRing ? ringOf(writer) : 0;
    return {Base::Published, writer, ofWriter + slot * layout_.stride()};
  }

  void describe() {
    plan_->algorithm = schedule_.name;
    plan_->type = call_.type;
    plan_->elementBytes = reduce::sizeOf(call_.type);
    plan_->divisor = call_.op == reduce::RedOp::Avg ? target_.ranks : 1;
    plan_->segments = layout_.segments();
    plan_->segmentBytes = layout_.segmentBytes();
    plan_->fingerprint = fingerprintOf(call_, target_.ranks, schedule_.name);
    plan_->what = packWhat(call_);
    plan_->count = call_.count;
    plan_->callsEpilogue = call_.op == reduce::RedOp::Epilogue;
    if (schedule::isReduction(schedule_.collective)) {
      plan_->fold = reduce::foldKernel(call_.type, call_.op);
      plan_->spread = reduce::spreadKernel(call_.type, call_.op);
      plan_->scale = reduce::scaleKernel(call_.type);
    }
  }

  Status bindOp(const schedule::Op& op) {
    if (op.kind == schedule::OpKind::Apply && op.apply == schedule::ApplyId::Finish) {
      if (call_.op == reduce::RedOp::Epilogue) return bindEpilogue(op);
      if (call_.op != reduce::RedOp::Avg) {
        if (op.src == op.dst) return {};
        schedule::Op copy = op;
        copy.kind = schedule::OpKind::Copy;
        return bindOp(copy);
      }
      if (takeFinish(op)) return {};
    }
    if (layout_.isOnePiece(op.span())) return bindPiece(op, 0, op.chunks);
    for (std::uint32_t j = 0; j < op.chunks; ++j) WEFT_TRY(bindPiece(op, j, 1));
    return {};
  }

  Status bindPiece(const schedule::Op& op, std::uint32_t skip, std::uint32_t chunks) {
    BoundOp bound{};
    bound.max = bytes(chunks);
    bound.limit = op.chunks == 0 ? 0 : layout_.limit(op.shape + skip);
    if (op.kind == schedule::OpKind::Put)
      WEFT_TRY(bindPut(op, skip, &bound));
    else if (op.kind == schedule::OpKind::Wait)
      bindWait(op.dst + skip, &bound);
    else
      WEFT_TRY(bindLocal(op, skip, chunks, &bound));
    plan_->ops.push_back(bound);
    if (bound.kind != Kind::Raise) computed_ = plan_->ops.size();
    return {};
  }

  Status bindPut(const schedule::Op& op, std::uint32_t skip, BoundOp* bound) {
    const std::size_t number = static_cast<std::size_t>(&op - program_.ops.data());
    bound->peer = op.peer;
    bound->arrival = arrivalOf({target_.rank, staging_.putArrival(number) + skip});
    if (op.isSignal()) {
      bound->kind = Kind::Signal;
      return {};
    }
    const std::uint32_t chunks = pieceOf(op);
    WEFT_TRY(checkRun(op.src + skip, chunks));
    bound->src = place(op.src + skip);
    if (schedule_.shared) return bindStore(op, skip, bound);
    if (bound->src.base == Base::Published) return refuse("passes on what another rank published");
    if (schedule_.published && op.dst.buf == schedule::Buf::Tmp && !fitsInline(chunks))
      return bindPublished(op, skip, bound);
    for (std::uint32_t j = 0; j < chunks; ++j) readBy(alias(op.src + skip + j)) = drains_;
    if (op.dst.buf == schedule::Buf::Out) {
      bound->kind = Kind::PutDirect;
      bound->dst = {Base::Out, 0, layout_.outOffset(op.dst.index + skip)};
      bound->clearToSend = lastSignal_[op.peer];
      if (bound->clearToSend == kNobody)
        return refuse(
            text("puts into rank ", op.peer, "'s receive buffer without its clear-to-send"));
      return {};
    }
    bound->kind = fitsInline(chunks) ? Kind::PutInline : Kind::Put;
    const std::uint64_t slot = staging_.putSlot(number) + skip;
    bound->dst = landing(target_.rank, slot);
    return {};
  }

  // The first of the puts that are alike keeps it here, and each tells its peer.
  Status bindPublished(const schedule::Op& op, std::uint32_t skip, BoundOp* bound) {
    const std::size_t number = static_cast<std::size_t>(&op - program_.ops.data());
    const std::uint32_t slot = staging_.putSlot(number) + skip;
    const bool again = program_.putsAgain(op);
    if (again ? staging_.putSlot(number - 1) + skip != slot : published_[slot])
      return refuse("publishes what it does not put to all its peers alike");
    bound->kind = Kind::Raise;
    if (again) return {};
    BoundOp publish = *bound;
    publish.kind = Kind::Publish;
    publish.dst = published(target_.rank, slot);
    plan_->ops.push_back(publish);
    for (std::uint32_t j = 0; j < pieceOf(op); ++j) published_[slot + j] = true;
    return {};
  }

  // What has just been computed goes to the peer while it is in the first-level cache: the op that
  // computes it stores it there, too, or alone, and only the arrival is left to raise.
  Status bindStore(const schedule::Op& op, std::uint32_t skip, BoundOp* bound) {
    const Place there{Base::PeerOut, op.peer, layout_.outOffset(op.dst.index + skip)};
    const Place from = std::exchange(bound->src, {});
    bound->kind = Kind::Raise;
    BoundOp* made = computed_ == 0 ? nullptr : &plan_->ops[computed_ - 1];
    const bool computes = made != nullptr && (made->kind == Kind::Copy || made->kind == Kind::Fold);
    const bool isMade = computes && made->dst == from && made->max == bound->max;
    const bool isStaged = op.src.buf == schedule::Buf::Tmp;
    if (isStaged && !isMade) return refuse("stages what it stores to a peer");
    if (isStaged) {
      made->dst = there;
      return {};
    }
    if (!isMade) {
      BoundOp store = *bound;
      store.kind = Kind::Store;
      store.src = from;
      store.dst = there;
      plan_->ops.push_back(store);
      computed_ = plan_->ops.size();
      return {};
    }
    if (made->spread == 0) made->firstSpread = static_cast<std::uint32_t>(plan_->operands.size());
    plan_->operands.push_back(there);
    ++made->spread;
    return {};
  }

  void bindWait(schedule::Slot dst, BoundOp* bound) {
    bound->kind = Kind::Wait;
    bound->arrival = arrivalHere(dst);
    bound->peer = staging_.arrival(dst).writer;
    if (dst.buf == schedule::Buf::Signal) lastSignal_[bound->peer] = bound->arrival;
  }

  Status bindLocal(const schedule::Op& op, std::uint32_t skip, std::uint32_t chunks,
                   BoundOp* bound) {
    WEFT_TRY(checkRun(op.dst + skip, chunks));
    bound->dst = place(op.dst + skip);
    if (bound->dst.base == Base::Published) return refuse("writes what another rank published");
    bound->drain = overwritesSource(op.dst + skip, chunks);
    if (op.kind == schedule::OpKind::Reduce) {
      bound->kind = Kind::Fold;
      bound->first = static_cast<std::uint32_t>(plan_->operands.size());
      bound->operands = op.operands;
      for (std::uint32_t k = 0; k < op.operands; ++k) {
        const schedule::Slot operand = program_.operands[op.firstOperand + k] + skip;
        WEFT_TRY(checkRun(operand, chunks));
        plan_->operands.push_back(place(operand));
      }
      return {};
    }
    WEFT_TRY(checkRun(op.src + skip, chunks));
    bound->src = place(op.src + skip);
    if (op.kind == schedule::OpKind::Copy)
      bound->kind = Kind::Copy;
    else
      bound->kind = op.apply == schedule::ApplyId::Scale ? Kind::Scale : Kind::Finish;
    return {};
  }

  // A Finish of what has just been summed is done by the Fold, in registers.
  bool takeFinish(const schedule::Op& op) {
    const std::uint32_t piece = pieceOf(op);
    const std::size_t pieces = op.chunks / piece;
    if (plan_->ops.size() < pieces || !(op.src == op.dst)) return false;
    for (std::size_t k = 0; k < pieces; ++k) {
      const BoundOp& before = plan_->ops[plan_->ops.size() - pieces + k];
      const Place at = place(op.dst + static_cast<std::uint32_t>(k));
      if (before.kind != Kind::Fold || before.dst != at || before.max != bytes(piece)) return false;
    }
    for (std::size_t k = 0; k < pieces; ++k)
      plan_->ops[plan_->ops.size() - pieces + k].finish = true;
    return true;
  }

  // The epilogue takes addends, so it is a Fold of one where nothing has just been added: of what
  // was copied there, or of what lies there.
  Status bindEpilogue(const schedule::Op& op) {
    if (takeFinish(op)) return {};
    schedule::Op fold = op;
    fold.kind = schedule::OpKind::Copy;
    BoundOp* before = plan_->ops.empty() ? nullptr : &plan_->ops.back();
    const bool copied = op.src == op.dst && before != nullptr && op.chunks == 1 &&
                        before->kind == Kind::Copy && before->dst == place(op.dst);
    if (!copied) {
      WEFT_TRY(bindPiece(fold, 0, op.chunks));
      before = &plan_->ops.back();
    }
    before->kind = Kind::Fold;
    before->finish = true;
    before->operands = 1;
    before->first = static_cast<std::uint32_t>(plan_->operands.size());
    plan_->operands.push_back(before->src);
    return {};
  }

  // How far peers reach into this rank's buffers: into Out as far as it waits for them, into In, if
  // they read it, anywhere.
  void openShared() {
    plan_->tells = schedule_.ranks - 1;
    plan_->opening = 2 * plan_->tells;
    for (const schedule::Op& op : program_.ops) {
      const bool lands = op.kind == schedule::OpKind::Wait && op.dst.buf == schedule::Buf::Out;
      for (std::uint32_t j = 0; lands && j < op.chunks; ++j)
        extend(&plan_->sharedOut, op.shape + j, layout_.outOffset(op.dst.index + j));
    }
    if (!isRead()) return;
    for (std::uint32_t i = 0; i < schedule_.inChunks; ++i)
      extend(&plan_->sharedIn,
             schedule::logicalIn(schedule_.collective, target_.rank, i, schedule_.parts),
             layout_.inOffset(i));
  }

  // Empty blocks may lie anywhere.
  void extend(std::uint64_t* shared, std::uint32_t logical, std::uint64_t offset) const {
    const std::uint64_t length = std::min(layout_.limit(logical), layout_.stride());
    if (length != 0) *shared = std::max(*shared, offset + length);
  }

  // Do peers read this rank's In? As the typical ones do.
  bool isRead() const {
    return std::ranges::any_of(schedule_.typical, [&](std::uint32_t peer) {
      const schedule::Program theirs = schedule_.program(peer);
      const auto isMine = [&](schedule::Slot slot) { return slot.owner == target_.rank; };
      return peer != target_.rank && (std::ranges::any_of(theirs.operands, isMine) ||
                                      std::ranges::any_of(theirs.ops, isMine, &schedule::Op::src));
    });
  }

  void streamResults() {
    if ((layout_.bufferBytes() >= target_.streamMin) == target_.flipsStores) return;
    const Sources sent(plan_->ops);
    for (BoundOp& op : plan_->ops) {
      const bool stores = op.kind == Kind::Copy || op.kind == Kind::Fold;
      op.stream =
          op.dst.base == Base::PeerOut || (stores && op.dst.base == Base::Out && !sent.meet(op));
    }
  }

  // Those of all ops of a kind, each once.
  std::vector<std::uint32_t> peersOf(Kind kind) const {
    std::vector<bool> isOne(target_.ranks, false);
    for (const BoundOp& op : plan_->ops)
      if (op.kind == kind) isOne[op.peer] = true;
    std::vector<std::uint32_t> peers;
    for (std::uint32_t r = 0; r < target_.ranks; ++r)
      if (isOne[r]) peers.push_back(r);
    return peers;
  }

  void countCrossings() {
    for (BoundOp& op : plan_->ops) {
      if (op.kind != Kind::Store && op.kind != Kind::Copy && op.kind != Kind::Fold) continue;
      op.crossings = op.spread + (op.dst.isPeersBuffer() ? 1 : 0);
      if (op.kind == Kind::Copy && op.src.isPeersBuffer()) ++op.crossings;
      for (std::uint32_t k = 0; op.kind == Kind::Fold && k < op.operands; ++k)
        if (plan_->operands[op.first + k].isPeersBuffer()) ++op.crossings;
    }
  }

  Place place(schedule::Slot slot) const {
    switch (slot.buf) {
      case schedule::Buf::In:
        if (slot.owner != schedule::kMine)
          return {Base::PeerIn, slot.owner, layout_.inOffset(slot.index)};
        return {Base::In, 0, layout_.inOffset(slot.index)};
      case schedule::Buf::Out:
        return {Base::Out, 0, layout_.outOffset(slot.index)};
      default:
        return tmp_[slot.index];
    }
  }

  // In and Out may be the same memory: an In slot and its Out slot count as one.
  schedule::Slot alias(schedule::Slot slot) const {
    if (slot.buf != schedule::Buf::In) return slot;
    const std::uint32_t i =
        schedule::inPlaceOut(schedule_.collective, target_.rank, slot.index, schedule_.parts);
    return i == schedule::kNoAlias ? slot : schedule::out(i);
  }

  // The engine waits before such an op until its puts have read their sources. So schedules that
  // are not safe in place by themselves (one-shot) need no copy of the input.
  bool overwritesSource(schedule::Slot dst, std::uint32_t chunks) {
    for (std::uint32_t j = 0; j < chunks; ++j) {
      if (readBy(alias(dst + j)) != drains_) continue;
      ++drains_;  // the op drains all of them
      return true;
    }
    return false;
  }
  // After how many drains a put last read the slot, which is no signal.
  std::uint32_t& readBy(schedule::Slot slot) {
    if (slot.buf == schedule::Buf::In) return readIn_[slot.index];
    return slot.buf == schedule::Buf::Out ? readOut_[slot.index] : readTmp_[slot.index];
  }

  std::uint32_t arrivalHere(schedule::Slot slot) const { return arrivalOf(staging_.arrival(slot)); }
  std::uint32_t arrivalOf(StagingMap::Spot spot) const {
    return target_.regions(plan_->inRing).slotOf(spot.writer, spot.index);
  }

  // A run of Tmp slots is one op only if it is one piece of memory.
  Status checkRun(schedule::Slot first, std::uint32_t chunks) const {
    for (std::uint32_t j = 1; first.buf == schedule::Buf::Tmp && j < chunks; ++j) {
      const Place& a = tmp_[first.index];
      const Place& b = tmp_[first.index + j];
      if (b.base != a.base || b.peer != a.peer || b.offset != a.offset + bytes(j))
        return refuse("uses messages of different puts as one run");
    }
    return {};
  }

  Status refuse(std::string_view what) const {
    return Status::error(Code::InternalError, "algorithm ", schedule_.name, " ", what);
  }

  std::uint64_t bytes(std::uint32_t chunks) const { return chunks * layout_.stride(); }
  // How many of an op's chunks are one piece of memory.
  std::uint32_t pieceOf(const schedule::Op& op) const {
    return layout_.isOnePiece(op.span()) ? op.chunks : 1;
  }
  // Sender and receiver of a run of chunks decide alike.
  bool fitsInline(std::uint32_t chunks) const {
    return bytes(chunks) <= transport::kInlineBytes && standsAlone(layout_);
  }
  // Then it does not matter where the messages lie to each other.
  bool standsAlone(const ByteLayout& layout) const {
    return !(layout.isVector() && schedule_.joinsPuts);
  }

  const schedule::Schedule& schedule_;
  const Call& call_;
  const BindTarget& target_;
  const schedule::Program program_;
  const StagingMap staging_;
  const ByteLayout layout_;
  Plan* const plan_;
  const transport::Stages* stages_ = nullptr;  // of a ring, where they are needed
  std::vector<bool> published_;                // of the slots in the own region
  std::vector<Place> tmp_;                     // Tmp slot -> where it lies on this rank
  std::vector<std::uint32_t> lastSignal_;      // rank -> tag of its last signal waited for
  // Slots that unfinished puts may read: those of the last drain and before are through.
  std::vector<std::uint32_t> readIn_, readOut_, readTmp_;
  std::uint32_t drains_ = 1;
  std::size_t computed_ = 0;  // the last op that is no Raise, from 1; 0: none
};

}  // namespace

Status bindSchedule(const schedule::Schedule& schedule, const Call& call, const BindTarget& target,
                    std::unique_ptr<Plan>* out) {
  auto plan = std::make_unique<Plan>();
  WEFT_TRY(Binder(schedule, call, target, plan.get()).run());
  plan->ops.shrink_to_fit();
  plan->operands.shrink_to_fit();
  *out = std::move(plan);
  return {};
}

}  // namespace weft::plan
