// SPDX-License-Identifier: Apache-2.0
#include "plan/bind.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "transports/segment.h"

namespace weft {
namespace {

constexpr std::uint32_t kNobody = ~0u;

// Each rank's region in the cells and in the arena of every other.
std::uint32_t cellsOfRegion(const BindTarget& target) { return target.tags / target.ranks; }
std::uint64_t bytesOfRegion(const BindTarget& target) {
  return target.budget.arenaBytes / target.ranks / kLine * kLine;
}

Budget regionBudget(const BindTarget& target, const LandingMap& landing) {
  return {bytesOfRegion(target), target.budget.landingBytes, landing.slotsPerRegion()};
}

class Binder {
 public:
  Binder(const Schedule& schedule, const Call& call, const BindTarget& target)
      : schedule_(schedule),
        call_(call),
        target_(target),
        landing_(schedule, target.rank),
        layout_(schedule, call, regionBudget(target, landing_)),
        program_(schedule.program(target.rank)),
        lastSignal_(schedule.ranks, kNobody) {}

  Status run(Plan* plan);

 private:
  Status checkFits() const;
  void placeTmp();
  std::uint32_t cellHere(Slot slot) const;
  Status checkRun(Slot first, std::uint32_t chunks) const;
  void describe(Plan* plan) const;

  Status bindOp(const Op& op);
  Status bindPiece(const Op& op, std::uint32_t skip, std::uint32_t chunks);
  Status bindPut(const Op& op, std::uint32_t skip, BoundOp* bound);
  void bindWait(Slot dst, BoundOp* bound);
  void bindStore(const Op& op, std::uint32_t skip, BoundOp* bound);
  void openShared();
  void shareWith(std::uint32_t peer);
  std::uint64_t lengthOf(std::uint32_t logical, std::uint32_t chunks) const;
  Status bindLocal(const Op& op, std::uint32_t skip, std::uint32_t chunks, BoundOp* bound);
  bool takeFinish(const Op& op);
  Status bindKernel(const Op& op);
  void streamResults();
  void nameWriters();
  void countCrossings();
  bool isReadAgain(const BoundOp& result) const;

  Place place(Slot slot) const;
  Slot alias(Slot slot) const;
  bool overwritesSource(Slot dst, std::uint32_t chunks);
  std::uint64_t bytes(std::uint32_t chunks) const { return chunks * layout_.stride(); }
  // Sender and receiver of a run of chunks decide alike.
  bool fitsCell(std::uint32_t chunks) const {
    return bytes(chunks) <= kInlineBytes && !(layout_.isVector() && landing_.runsSpanPuts());
  }

  const Schedule& schedule_;
  const Call& call_;
  const BindTarget& target_;
  const LandingMap landing_;
  const ByteLayout layout_;
  const Program program_;
  Plan* plan_ = nullptr;
  std::vector<Place> tmp_;                           // Tmp slot -> where it lies on this rank
  std::vector<std::uint32_t> lastSignal_;            // rank -> tag of its last signal waited for
  std::set<std::pair<Buf, std::uint32_t>> reading_;  // slots that unfinished puts may read
};

Status Binder::checkFits() const {
  if (landing_.cellsPerRegion() > cellsOfRegion(target_))
    return Status::error(
        Code::InvalidUsage,
        text("algorithm ", schedule_.name, " needs ", landing_.cellsPerRegion(),
             " cells from one rank to another on ", target_.ranks, " ranks; there are ",
             cellsOfRegion(target_), "; fix: choose another algorithm"));
  if (landing_.slotsPerRegion() * layout_.stride() > bytesOfRegion(target_))
    return Status::error(
        Code::InvalidUsage,
        text("algorithm ", schedule_.name, " needs ", landing_.slotsPerRegion() * layout_.stride(),
             " bytes of landing memory from one rank to another; there are ",
             bytesOfRegion(target_), "; fix: choose another algorithm"));
  return {};
}

// Tmp slots lie in the arena, in their writer's region, but for arrivals that fit into their cell.
void Binder::placeTmp() {
  for (std::uint32_t i = 0; i < schedule_.tmpChunks; ++i) {
    const LandingMap::Spot spot = landing_.tmp(i);
    tmp_.push_back(
        {Base::Arena, 0, spot.writer * bytesOfRegion(target_) + spot.index * layout_.stride()});
  }
  for (const Op& op : program_.ops) {
    if (op.kind != OpKind::Wait || op.dst.buf != Buf::Tmp) continue;
    const std::uint32_t run = layout_.isVector() ? op.chunks : 1;
    if (!fitsCell(run)) continue;
    for (std::uint32_t j = 0; j < op.chunks; ++j) {
      const std::uint64_t cell = cellHere(op.dst + j / run * run) * sizeof(Cell);
      tmp_[op.dst.index + j] = {Base::Cells, 0, cell + offsetof(Cell, inlined) + bytes(j % run)};
    }
  }
}

std::uint32_t Binder::cellHere(Slot slot) const {
  const LandingMap::Spot spot = landing_.cell(slot);
  return spot.writer * cellsOfRegion(target_) + spot.index;
}

// A run of Tmp slots is one op only if it is one piece of memory.
Status Binder::checkRun(Slot first, std::uint32_t chunks) const {
  for (std::uint32_t j = 1; first.buf == Buf::Tmp && j < chunks; ++j) {
    const Place& a = tmp_[first.index];
    const Place& b = tmp_[first.index + j];
    if (b.base != a.base || b.offset != a.offset + bytes(j))
      return Status::error(
          Code::InternalError,
          text("algorithm ", schedule_.name, " uses messages of different puts as one run"));
  }
  return {};
}

Place Binder::place(Slot slot) const {
  switch (slot.buf) {
    case Buf::In:
      if (slot.owner != kMine) return {Base::PeerIn, slot.owner, layout_.inOffset(slot.index)};
      return {Base::In, 0, layout_.inOffset(slot.index)};
    case Buf::Out:
      return {Base::Out, 0, layout_.outOffset(slot.index)};
    default:
      return tmp_[slot.index];
  }
}

// In and Out may be the same memory: an In slot and its Out slot count as one.
Slot Binder::alias(Slot slot) const {
  if (slot.buf != Buf::In) return slot;
  const std::uint32_t i = inPlaceOut(schedule_.collective, target_.rank, slot.index);
  return i == kNoAlias ? slot : out(i);
}

// The engine waits before such an op until its puts have read their sources. That also makes
// schedules that are not safe in place by themselves (one-shot) safe, without a copy of the input.
bool Binder::overwritesSource(Slot dst, std::uint32_t chunks) {
  for (std::uint32_t j = 0; j < chunks; ++j) {
    const Slot slot = alias(dst + j);
    if (reading_.contains({slot.buf, slot.index})) {
      reading_.clear();  // the op drains all of them
      return true;
    }
  }
  return false;
}

Status Binder::bindPut(const Op& op, std::uint32_t skip, BoundOp* bound) {
  const std::size_t number = static_cast<std::size_t>(&op - program_.ops.data());
  bound->peer = op.peer;
  bound->tag = target_.rank * cellsOfRegion(target_) + landing_.putCell(number) + skip;
  if (op.isSignal()) {
    bound->kind = BoundOp::Kind::Signal;
    return {};
  }
  const std::uint32_t chunks = layout_.isVector() ? op.chunks : 1;
  WEFT_TRY(checkRun(op.src + skip, chunks));
  bound->src = place(op.src + skip);
  if (schedule_.shared) {
    bindStore(op, skip, bound);
    return {};
  }
  for (std::uint32_t j = 0; j < chunks; ++j) {
    const Slot read = alias(op.src + skip + j);
    reading_.insert({read.buf, read.index});
  }
  if (op.dst.buf == Buf::Out) {
    bound->kind = BoundOp::Kind::PutDirect;
    bound->dst = {Base::Out, 0, layout_.outOffset(op.dst.index + skip)};
    bound->grant = lastSignal_[op.peer];
    if (bound->grant == kNobody)
      return Status::error(Code::InternalError,
                           text("algorithm ", schedule_.name, " puts into rank ", op.peer,
                                "'s receive buffer without its grant"));
    return {};
  }
  bound->kind = fitsCell(chunks) ? BoundOp::Kind::PutInCell : BoundOp::Kind::Put;
  const std::uint64_t slot = landing_.putSlot(number) + skip;
  bound->dst = {Base::Arena, 0, target_.rank * bytesOfRegion(target_) + slot * layout_.stride()};
  return {};
}

// What has just been computed goes to the peer while it is in the first-level cache: the op that
// computes it stores it there, too, and only the arrival is left to raise.
void Binder::bindStore(const Op& op, std::uint32_t skip, BoundOp* bound) {
  const Place there{Base::PeerOut, op.peer, layout_.outOffset(op.dst.index + skip)};
  bound->kind = BoundOp::Kind::Raise;
  auto made = std::find_if(plan_->ops.rbegin(), plan_->ops.rend(), [](const BoundOp& before) {
    return before.kind != BoundOp::Kind::Raise;
  });
  const bool computes = made != plan_->ops.rend() &&
                        (made->kind == BoundOp::Kind::Copy || made->kind == BoundOp::Kind::Fold);
  if (!computes || !(made->dst == bound->src) || made->max != bound->max) {
    BoundOp store = *bound;
    store.kind = BoundOp::Kind::Store;
    store.dst = there;
    plan_->ops.push_back(store);
    return;
  }
  if (made->spread == 0) made->firstSpread = static_cast<std::uint32_t>(plan_->operands.size());
  plan_->operands.push_back(there);
  ++made->spread;
}

std::uint64_t Binder::lengthOf(std::uint32_t logical, std::uint32_t chunks) const {
  return std::min(layout_.limit(logical), bytes(chunks));
}

// How far `peer` reaches into this rank's buffers.
void Binder::shareWith(std::uint32_t peer) {
  const Program theirs = schedule_.program(peer);
  const auto reads = [&](const Op& op, Slot slot) {
    if (slot.owner != target_.rank || op.chunks == 0) return;
    for (std::uint32_t j = 0; j < op.chunks; ++j)
      plan_->sharedIn =
          std::max(plan_->sharedIn, layout_.inOffset(slot.index + j) + lengthOf(op.shape + j, 1));
  };
  for (const Op& op : theirs.ops) {
    if (op.kind != OpKind::Put) reads(op, op.src);
    for (std::uint32_t k = 0; k < op.operands; ++k) reads(op, theirs.operands[op.firstOperand + k]);
    for (std::uint32_t j = 0; op.kind == OpKind::Put && op.peer == target_.rank && j < op.chunks;
         ++j)
      plan_->sharedOut = std::max(plan_->sharedOut,
                                  layout_.outOffset(op.dst.index + j) + lengthOf(op.shape + j, 1));
  }
}

void Binder::openShared() {
  plan_->tells = schedule_.ranks - 1;
  plan_->opening = 2 * plan_->tells;
  for (std::uint32_t r = 0; r < schedule_.ranks; ++r) {
    if (r != target_.rank) shareWith(r);
  }
}

void Binder::bindWait(Slot dst, BoundOp* bound) {
  bound->kind = BoundOp::Kind::Wait;
  bound->tag = cellHere(dst);
  bound->peer = landing_.cell(dst).writer;
  if (dst.buf == Buf::Signal) lastSignal_[bound->peer] = bound->tag;
}

Status Binder::bindLocal(const Op& op, std::uint32_t skip, std::uint32_t chunks, BoundOp* bound) {
  WEFT_TRY(checkRun(op.dst + skip, chunks));
  bound->dst = place(op.dst + skip);
  bound->drain = overwritesSource(op.dst + skip, chunks);
  if (op.kind == OpKind::Reduce) {
    bound->kind = BoundOp::Kind::Fold;
    bound->first = static_cast<std::uint32_t>(plan_->operands.size());
    bound->operands = op.operands;
    for (std::uint32_t k = 0; k < op.operands; ++k) {
      const Slot operand = program_.operands[op.firstOperand + k] + skip;
      WEFT_TRY(checkRun(operand, chunks));
      plan_->operands.push_back(place(operand));
    }
    return {};
  }
  WEFT_TRY(checkRun(op.src + skip, chunks));
  bound->src = place(op.src + skip);
  if (op.kind == OpKind::Copy)
    bound->kind = BoundOp::Kind::Copy;
  else
    bound->kind = op.kernel == KernelId::Scale ? BoundOp::Kind::Scale : BoundOp::Kind::Finish;
  return {};
}

Status Binder::bindPiece(const Op& op, std::uint32_t skip, std::uint32_t chunks) {
  BoundOp bound{};
  bound.max = bytes(chunks);
  bound.limit = op.chunks == 0 ? 0 : layout_.limit(op.shape + skip);
  if (op.kind == OpKind::Put)
    WEFT_TRY(bindPut(op, skip, &bound));
  else if (op.kind == OpKind::Wait)
    bindWait(op.dst + skip, &bound);
  else
    WEFT_TRY(bindLocal(op, skip, chunks, &bound));
  plan_->ops.push_back(bound);
  return {};
}

// A Finish of what has just been summed is done by the Fold, in registers.
bool Binder::takeFinish(const Op& op) {
  const std::size_t pieces = layout_.isVector() ? 1 : op.chunks;
  if (plan_->ops.size() < pieces || !(op.src == op.dst)) return false;
  for (std::size_t k = 0; k < pieces; ++k) {
    const BoundOp& before = plan_->ops[plan_->ops.size() - pieces + k];
    const Place at = place(op.dst + static_cast<std::uint32_t>(k));
    if (before.kind != BoundOp::Kind::Fold || before.dst.base != at.base ||
        before.dst.offset != at.offset || before.max != bytes(layout_.isVector() ? op.chunks : 1))
      return false;
  }
  for (std::size_t k = 0; k < pieces; ++k) plan_->ops[plan_->ops.size() - pieces + k].finish = true;
  return true;
}

// The kernel takes addends, so it is a Fold of one where nothing has just been added: of what was
// copied there, or of what lies there.
Status Binder::bindKernel(const Op& op) {
  if (takeFinish(op)) return {};
  Op fold = op;
  fold.kind = OpKind::Copy;
  BoundOp* before = plan_->ops.empty() ? nullptr : &plan_->ops.back();
  const bool copied = op.src == op.dst && before != nullptr && op.chunks == 1 &&
                      before->kind == BoundOp::Kind::Copy && before->dst == place(op.dst);
  if (!copied) {
    WEFT_TRY(bindPiece(fold, 0, op.chunks));
    before = &plan_->ops.back();
  }
  before->kind = BoundOp::Kind::Fold;
  before->finish = true;
  before->operands = 1;
  before->first = static_cast<std::uint32_t>(plan_->operands.size());
  plan_->operands.push_back(before->src);
  return {};
}

Status Binder::bindOp(const Op& op) {
  if (op.kind == OpKind::Kernel && op.kernel == KernelId::Finish) {
    if (call_.op == RedOp::Kernel) return bindKernel(op);
    if (call_.op != RedOp::Avg) {
      if (op.src == op.dst) return {};
      Op copy = op;
      copy.kind = OpKind::Copy;
      return bindOp(copy);
    }
    if (takeFinish(op)) return {};
  }
  if (layout_.isVector() || op.chunks <= 1) return bindPiece(op, 0, op.chunks);
  for (std::uint32_t j = 0; j < op.chunks; ++j) WEFT_TRY(bindPiece(op, j, 1));
  return {};
}

// Is what this op writes the source of a put?
bool Binder::isReadAgain(const BoundOp& result) const {
  return std::ranges::any_of(plan_->ops, [&](const BoundOp& op) {
    const bool puts = op.kind == BoundOp::Kind::Put || op.kind == BoundOp::Kind::PutDirect ||
                      op.kind == BoundOp::Kind::Store;
    return puts && op.src.base == result.dst.base &&
           op.src.offset < result.dst.offset + result.max &&
           result.dst.offset < op.src.offset + op.max;
  });
}

void Binder::streamResults() {
  if (layout_.totalBytes() < target_.streamMin) return;
  for (BoundOp& op : plan_->ops) {
    const bool stores = op.kind == BoundOp::Kind::Copy || op.kind == BoundOp::Kind::Fold;
    op.stream =
        op.kind == BoundOp::Kind::Store || (stores && op.dst.base == Base::Out && !isReadAgain(op));
  }
}

void Binder::nameWriters() {
  std::set<std::uint32_t> writers;
  for (const BoundOp& op : plan_->ops)
    if (op.kind == BoundOp::Kind::Wait && op.peer != target_.rank) writers.insert(op.peer);
  plan_->writers.assign(writers.begin(), writers.end());
}

void Binder::countCrossings() {
  const auto isPeers = [](const Place& p) {
    return p.base == Base::PeerIn || p.base == Base::PeerOut;
  };
  for (BoundOp& op : plan_->ops) {
    const bool stores = op.kind == BoundOp::Kind::Store;
    if (!stores && op.kind != BoundOp::Kind::Copy && op.kind != BoundOp::Kind::Fold) continue;
    op.crossings = op.spread + (stores ? 1 : 0);
    if (op.kind == BoundOp::Kind::Copy && isPeers(op.src)) ++op.crossings;
    for (std::uint32_t k = 0; op.kind == BoundOp::Kind::Fold && k < op.operands; ++k)
      if (isPeers(plan_->operands[op.first + k])) ++op.crossings;
  }
}

void Binder::describe(Plan* plan) const {
  plan->algorithm = schedule_.name;
  plan->type = call_.type;
  plan->elementBytes = sizeOf(call_.type);
  plan->divisor = call_.op == RedOp::Avg ? target_.ranks : 1;
  plan->segments = layout_.segments();
  plan->segmentBytes = layout_.segmentBytes();
  plan->fingerprint = fingerprintOf(call_, target_.ranks, schedule_.name);
  plan->what = packWhat(call_);
  plan->count = call_.count;
  plan->callsKernel = call_.op == RedOp::Kernel;
  if (isReduction(schedule_.collective)) {
    plan->fold = foldKernel(call_.type, call_.op);
    plan->spread = spreadKernel(call_.type, call_.op);
    plan->scale = scaleKernel(call_.type);
  }
}

Status Binder::run(Plan* plan) {
  plan_ = plan;
  WEFT_TRY(checkFits());
  placeTmp();
  describe(plan);
  for (const Op& op : program_.ops) WEFT_TRY(bindOp(op));
  streamResults();
  if (schedule_.shared) openShared();
  nameWriters();
  countCrossings();
  return {};
}

}  // namespace

Status bindSchedule(const Schedule& schedule, const Call& call, const BindTarget& target,
                    std::unique_ptr<Plan>* out) {
  auto plan = std::make_unique<Plan>();
  WEFT_TRY(Binder(schedule, call, target).run(plan.get()));
  plan->ops.shrink_to_fit();
  plan->operands.shrink_to_fit();
  *out = std::move(plan);
  return {};
}

}  // namespace weft
