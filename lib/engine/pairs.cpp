// SPDX-License-Identifier: Apache-2.0
#include "engine/pairs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy.h"
#include "base/text.h"

namespace weft::engine {
namespace {

// Bytes of one message that are read before other transfers get their turn and the watch is asked.
constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 20;

// A tag: the type, two flags, 40 bits of count, which no host has the memory for, and of a
// collective 16 bits of the fingerprint of all calls so far.
constexpr std::uint64_t kOffered = 0x80;  // the sender says where the message lies, for its reader
constexpr std::uint64_t kCollective = 0x40;
constexpr std::uint64_t kTypes = kCollective - 1;
constexpr std::uint64_t kCounts = (std::uint64_t{1} << 40) - 1;
constexpr std::uint64_t kCalls = std::uint64_t{0xffff} << 48;

std::uint64_t countOf(std::uint64_t tag) { return tag >> 8 & kCounts; }

std::string describeTag(std::uint64_t tag) {
  return text("count=", countOf(tag), ", ", reduce::name(static_cast<reduce::DType>(tag & kTypes)),
              (tag & kCollective) != 0 ? ", of a collective" : "");
}

}  // namespace

// What is read where it lies spares a copy, and costs its sender the wait for the credit. Beyond
// the cache one copy is better than two whatever these take.
PairTuning tunePairs(const tune::Machine& machine) {
  const double spared = 1 / machine.put.near(), taken = 1 / machine.take.near();
  const auto from = [&](double costNs, double nsPerByte) {
    const double bytes = nsPerByte > 0 ? costNs / nsPerByte : machine.cacheBytes;
    return static_cast<std::uint64_t>(std::min(bytes, machine.cacheBytes));
  };
  PairTuning tuning{
      .readMin = from(machine.exchangeNs, spared),
      .cmaMin = ~std::uint64_t{0},
      .streamMin = tune::streamFootprint(machine) / 2};  // of a message, read or written
  if (machine.cmaCallNs > 0)
    tuning.cmaMin =
        from(machine.exchangeNs + machine.cmaCallNs, spared + taken - 1 / machine.cmaTake.near());
  return tuning;
}

Pairs::Pairs(transport::Transport& transport, watch::Watch& watch, std::uint32_t rank,
             const WaitTuning& waiting, const PairTuning& tuning, const Crew& crew)
    : transport_(transport),
      watch_(watch),
      layout_(transport.layout()),
      rank_(rank),
      waiting_(waiting),
      tuning_(tuning),
      slotBytes_(layout_.pairBytes / (std::size_t{layout_.ranks} * kPairSlots)),
      own_(transport.own()),
      progress_(transport, watch, waiting_),
      work_(crew),
      sends_(layout_.ranks, 0),
      receives_(layout_.ranks, 0),
      sent_(layout_.ranks, layout_.epochsBefore),
      received_(layout_.ranks, layout_.epochsBefore),
      met_(layout_.ranks),
      landed_(layout_.ranks, 0),
      busySend_(layout_.ranks),
      busyReceive_(layout_.ranks) {}

bool Pairs::arrived(std::uint32_t peer, std::uint64_t piece) const {
  const transport::ArrivalSlot& arrival = arrivalHere(peer, piece % kPairSlots);
  return transport::epochOf(arrival.flag.load(std::memory_order_acquire)) == piece;
}

// A later piece in that arrival slot has waited for the credit, too.
bool Pairs::credited(std::uint32_t peer, std::uint64_t piece) const {
  const transport::ArrivalSlot& arrival = arrivalHere(peer, kPairSlots + piece % kPairSlots);
  return transport::epochOf(arrival.flag.load(std::memory_order_acquire)) >= piece;
}

// What both ends must agree on; errors print it.
std::uint64_t Pairs::tagOf(const PairOp& op) const {
  return (op.count & kCounts) << 8 | static_cast<std::uint64_t>(op.type) | call_;
}

Status Pairs::load(std::span<const PairOp> ops) {
  transfers_.clear();
  bool toSelf = false;
  for (const PairOp& op : ops) {
    toSelf = toSelf || op.peer == rank_;
    if (!met_[op.peer]) WEFT_TRY(meet(op.peer));
    transfers_.push_back({.op = op, .bytes = op.count * reduce::sizeOf(op.type)});
  }
  return toSelf ? copyToSelf() : Status();
}

// Gives memory to the arrival slots of a pair, at both ends: either may come first.
Status Pairs::meet(std::uint32_t peer) {
  const std::size_t bytes = kArrivalsPerPeer * sizeof(transport::ArrivalSlot);
  if (peer != rank_) {
    const std::uint64_t here =
        layout_.pairArrivals() + arrivalOf(peer, 0) * sizeof(transport::ArrivalSlot);
    WEFT_TRY(transport_.commit(rank_, here, bytes));
    WEFT_TRY(transport_.commit(peer, arrivalThere(0), bytes));
  }
  met_[peer] = true;
  return {};
}

Status Pairs::checkSelf(std::span<Transfer* const> sends,
                        std::span<Transfer* const> receives) const {
  if (sends.size() != receives.size())
    return Status::error(Code::InvalidUsage, "rank ", rank_, " sends ", sends.size(),
                         " and receives ", receives.size(),
                         " messages to itself in one group; fix: match them");
  for (std::size_t k = 0; k < sends.size(); ++k)
    if (tagOf(sends[k]->op) != tagOf(receives[k]->op))
      return Status::error(Code::InvalidUsage, "rank ", rank_, " sends (",
                           describeTag(tagOf(sends[k]->op)), ") and receives (",
                           describeTag(tagOf(receives[k]->op)),
                           ") to itself; fix: same count and type");
  return {};
}

// The k-th send to oneself meets the k-th receive from oneself.
Status Pairs::copyToSelf() {
  std::vector<Transfer*> sends, receives;
  for (Transfer& t : transfers_)
    if (t.op.peer == rank_) (t.op.isSend ? sends : receives).push_back(&t);
  WEFT_TRY(checkSelf(sends, receives));
  for (std::size_t k = 0; k < sends.size(); ++k) {
    for (std::uint64_t at = 0; at < sends[k]->bytes; at += kReadAtOnce) {
      WEFT_TRY(progress_.interruption());
      std::memmove(receives[k]->op.data + at, sends[k]->op.data + at,
                   std::min(kReadAtOnce, sends[k]->bytes - at));
    }
    sends[k]->finished = receives[k]->finished = true;
  }
  return {};
}

Status Pairs::run(std::span<const PairOp> ops) {
  call_ = 0;
  WEFT_TRY(load(ops));
  // Whoever has failed in the meantime counts on nobody touching its buffers.
  WEFT_TRY(watch_.firstError());
  for (const PairOp& op : ops) ++(op.isSend ? sends_ : receives_)[op.peer];
  return runAll();
}

Status Pairs::runCollective(std::span<const PairOp> ops) {
  call_ = (watch_.tag() & kCalls) | kCollective;
  WEFT_TRY(load(ops));
  WEFT_TRY(watch_.firstError());
  return runAll();
}

Status Pairs::runAll() {
  const transport::ProgressOwnership ownership(transport_);
  const TeamWork::Call call(work_, nsToReceive());
  const Status status = runLoaded();
  return status.ok() ? status : progress_.abandon(status);
}

double Pairs::nsToReceive() const {
  std::uint64_t bytes = 0;
  for (const Transfer& t : transfers_)
    if (!t.op.isSend) bytes += t.bytes;
  return work_.copyNs(bytes);
}

Status Pairs::runLoaded() {
  const Status status = runToTheEnd();
  return status.ok() || isDoneAnyway() ? Status() : status;
}

// Whoever has got all that was sent may abort at once. That must not fail this rank, which has only
// not seen yet that it is done.
bool Pairs::isDoneAnyway() {
  if (progress_.polls() && !progress_.poll([](std::uint64_t) {}).ok()) return false;
  const auto isDone = [this](const Transfer& t) {
    return t.finished || (t.offered != 0 && credited(t.op.peer, t.offered));
  };
  return transport_.outstanding() == 0 && std::ranges::all_of(transfers_, isDone);
}

Status Pairs::runToTheEnd() {
  const auto forget = [](std::uint64_t) {};
  progress_.begin();
  while (std::ranges::any_of(transfers_, [](const Transfer& t) { return !t.finished; })) {
    bool moved = false;
    WEFT_TRY(passOnce(&moved));
    if (progress_.polls()) WEFT_TRY(progress_.poll(forget));
    WEFT_TRY(moved ? progress_.moved() : progress_.idle(*this));
  }
  return progress_.drain(*this, forget);
}

// A step of each transfer, but that those of a pair and direction begin in order: an offer that is
// out holds up none.
Status Pairs::passOnce(bool* moved) {
  busySend_.assign(busySend_.size(), false);
  busyReceive_.assign(busyReceive_.size(), false);
  for (Transfer& t : transfers_) {
    if (t.finished) continue;
    std::vector<bool>& busy = t.op.isSend ? busySend_ : busyReceive_;
    if (t.offered == 0 && busy[t.op.peer]) continue;
    const Step step = t.op.isSend ? send(t) : receive(t);
    if (step == Step::Broken) return std::exchange(broken_, {});
    *moved = *moved || step == Step::Moved;
    if (!t.finished && t.offered == 0) busy[t.op.peer] = true;
  }
  return {};
}

bool Pairs::fail(Status why) {
  broken_ = std::move(why);
  return false;
}

Pairs::Step Pairs::putOrBlock(const transport::Put& put) {
  switch (transport_.put(put)) {
    case transport::PutResult::Done:
    case transport::PutResult::Pending:
      return Step::Moved;
    case transport::PutResult::Again:
      return Step::Blocked;
    default:
      fail(transport_.lastError());
      return Step::Broken;
  }
}

// Will the receiver read it where it lies?
bool Pairs::offers(Transfer& t) {
  if (t.moved != 0 || t.bytes <= transport::kInlineBytes) return false;
  const std::uint64_t least = std::min(tuning_.readMin, tuning_.cmaMin);
  if (t.bytes < least) return false;
  t.offer = {reinterpret_cast<std::uint64_t>(t.op.data), transport_.share(t.op.data, t.bytes)};
  return t.offer.reference != 0 ? t.bytes >= tuning_.readMin
                                : t.bytes >= tuning_.cmaMin && transport_.hasDirect(t.op.peer);
}

// The piece goes into the arrival slot or into its slot. The slots have memory for as long pieces
// as there were.
bool Pairs::land(transport::Put& put) {
  put.target = transport::kInlined;
  if (put.bytes <= transport::kInlineBytes) return true;
  put.target = slot(rank_, sent_[put.peer] + 1);
  for (std::uint32_t k = 0; k < kPairSlots && put.bytes > landed_[put.peer]; ++k) {
    const Status got = transport_.commit(put.peer, slot(rank_, k), put.bytes);
    if (!got.ok()) return fail(got);
  }
  landed_[put.peer] = std::max<std::uint64_t>(landed_[put.peer], put.bytes);
  return true;
}

Pairs::Step Pairs::send(Transfer& t) {
  if (t.offered != 0) {
    t.finished = credited(t.op.peer, t.offered);
    return t.finished ? Step::Moved : Step::Blocked;
  }
  const std::uint64_t piece = nextPiece(t);
  if (!mayPut(t.op.peer, piece)) return Step::Blocked;
  transport::Put put{.peer = t.op.peer,
                     .arrival = arrivalThere(piece % kPairSlots),
                     .flag = transport::arrivalFlag(piece, piece),
                     .tag = tagOf(t.op),
                     .src = t.op.data + t.moved,
                     .bytes = std::min(slotBytes_, t.bytes - t.moved)};
  const bool whole = offers(t);
  if (whole) {
    put.tag |= kOffered;
    put.src = reinterpret_cast<const std::byte*>(&t.offer);
    put.bytes = sizeof(t.offer);
  }
  if (!land(put)) return Step::Broken;
  const Step step = putOrBlock(put);
  if (step != Step::Moved) return step;
  sent_[put.peer] = piece;
  if (whole) {
    t.offered = piece;
    return step;
  }
  t.moved += put.bytes;
  t.finished = t.moved == t.bytes;
  return step;
}

// Another call, or other counts of this one.
Status Pairs::disagreeInCall(const Transfer& t, std::uint64_t tag) {
  const bool isOfThisCall = (tag & (kCalls | kCollective)) == call_;
  if (!isOfThisCall) return watch_.disagreement(t.op.peer);
  return watch_.declare(Status::error(
      {.code = Code::Mismatch,
       .who = watch_.nameOf(t.op.peer),
       .call = text(watch_.nameOf(t.op.peer), " sends ", countOf(tag), " elements to ",
                    watch_.nameOf(rank_), ", which expects ", t.op.count),
       .what = text("mismatched counts in ", watch_.currentCall(), ": {call}"),
       .fix = "pass the same count on both sides"}));
}

Pairs::Step Pairs::disagree(const Transfer& t, std::uint64_t tag) {
  if (call_ != 0) {
    fail(disagreeInCall(t, tag));
    return Step::Broken;
  }
  fail(watch_.declare(Status::error(
      {.code = Code::Mismatch,
       .who = watch_.nameOf(t.op.peer),
       .call = text(watch_.nameOf(t.op.peer), " called send(", describeTag(tag), ") to ",
                    watch_.nameOf(rank_), ", which called recv(", describeTag(tagOf(t.op)), ")"),
       .what = "mismatched point-to-point: {call}",
       .fix = "same count and type on both sides"})));
  return Step::Broken;
}

Pairs::Step Pairs::receive(Transfer& t) {
  const std::uint32_t peer = t.op.peer;
  const std::uint64_t piece = nextPiece(t);
  if (!arrived(peer, piece)) return Step::Blocked;
  const transport::ArrivalSlot& arrival = arrivalHere(peer, piece % kPairSlots);
  if ((arrival.tag & ~kOffered) != tagOf(t.op)) return disagree(t, arrival.tag);
  const bool whole = (arrival.tag & kOffered) != 0;
  const std::uint64_t end = whole ? t.bytes : std::min(t.moved + slotBytes_, t.bytes);
  if (t.taken != end && !(whole ? read(t, arrival) : take(t, arrival, end))) return Step::Broken;
  if (t.taken != end) return Step::Moved;
  const Step step = putOrBlock({.peer = peer,
                                .arrival = arrivalThere(kPairSlots + piece % kPairSlots),
                                .flag = transport::arrivalFlag(piece, piece),
                                .target = transport::kInlined});
  if (step != Step::Moved) return step;
  received_[peer] = piece;
  t.moved = end;
  t.finished = t.moved == t.bytes;
  return step;
}

bool Pairs::take(Transfer& t, const transport::ArrivalSlot& arrival, std::uint64_t end) {
  const std::uint64_t bytes = end - t.taken;
  const std::byte* const from = bytes <= transport::kInlineBytes
                                    ? arrival.inlined
                                    : own_.base() + slot(t.op.peer, nextPiece(t));
  std::memcpy(t.op.data + t.taken, from, bytes);
  t.taken = end;
  return true;
}

// copy(at, bytes) for the next bytes of an offered message, shared where that is worth it.
template <class Copy>
bool Pairs::readByTeam(Transfer& t, const Copy& copy) {
  const std::uint64_t from = t.taken;
  const std::uint64_t most = work_.hasTeam() ? kReadAtOnce * work_.members() : kReadAtOnce;
  const std::uint64_t bytes = std::min(most, t.bytes - from);
  t.taken += bytes;
  const std::optional<bool> done = work_.copy(bytes, [&](std::uint64_t first, std::uint64_t last) {
    return copy(from + first, last - first);
  });
  return done ? *done : copy(from, bytes);
}

// Some of an offered message. Its sender may have failed, and then counts on nobody reading it.
bool Pairs::read(Transfer& t, const transport::ArrivalSlot& arrival) {
  if (watch_.isBroken()) return fail(watch_.firstError());
  Offer offer;
  std::memcpy(&offer, arrival.inlined, sizeof(offer));
  if (offer.reference == 0) {
    const bool done = readByTeam(t, [&](std::uint64_t at, std::uint64_t bytes) {
      return transport_.getFrom(t.op.peer, offer.address + at, t.op.data + at, bytes);
    });
    return done || fail(transport_.lastError());
  }
  const std::byte* const there = transport_.reach(t.op.peer, offer.reference);
  if (there == nullptr)
    return fail(Status::error(Code::InternalError, watch_.nameOf(t.op.peer),
                              " shares memory that is not in its heap"));
  return readByTeam(t, [&](std::uint64_t at, std::uint64_t bytes) {
    void* to = t.op.data + at;
    if (t.bytes >= tuning_.streamMin)
      reduce::copyStream(&to, 1, there + at, bytes);
    else
      copyBytes(to, there + at, bytes);
    return true;
  });
}

bool Pairs::awaitsHere(const Seat& seat) const {
  return std::ranges::any_of(transfers_, [&](const Transfer& t) {
    return !t.finished && seat.isShared(transport_.control(t.op.peer));
  });
}

bool Pairs::ready() const {
  return std::ranges::any_of(transfers_, [this](const Transfer& t) {
    if (t.finished) return false;
    if (t.offered != 0) return credited(t.op.peer, t.offered);
    return t.op.isSend ? mayPut(t.op.peer, nextPiece(t)) : arrived(t.op.peer, nextPiece(t));
  });
}

std::uint32_t Pairs::waitingFor() const {
  std::uint32_t peer = rank_;
  for (const Transfer& t : transfers_)
    if (!t.finished) peer = t.op.peer;
  return peer;
}

watch::Watch::Needs Pairs::needs() const {
  return [this](std::uint32_t peer) {
    return std::ranges::any_of(
        transfers_, [peer](const Transfer& t) { return !t.finished && t.op.peer == peer; });
  };
}

}  // namespace weft::engine
