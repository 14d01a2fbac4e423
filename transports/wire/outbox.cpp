// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/outbox.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/mark.h"

namespace weft::wire {
namespace {

constexpr std::size_t kStripe = std::size_t{64} << 10;                // per rail, at least
constexpr std::size_t kAlign = 128;                                   // of pieces
constexpr std::uint64_t kCookie = (1u << AreaWire::kCookieBits) - 1;  // what is our own of one
constexpr std::uint64_t kTold = kCookie;                              // of a tell

std::size_t ceilDiv(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace

Outbox::Outbox(AreaWire& wire, BounceBuffer bounce, const WindowLayout& layout)
    : wire_(wire),
      caps_(wire.caps()),
      bounce_(bounce),
      arena_(layout.arena()),
      firstRail_(layout.ranks, 0) {
  for (std::uint32_t i = BounceBuffer::kSlots; i > 0; --i) free_.push_back(i - 1);
  refused_.reserve(2 * ImmediateData::kMost);
}

// One completion is the record's.
std::size_t Outbox::maxPut(const WireCaps& wire) {
  return (ImmediateData::kMost - 1) *
         (std::min(wire.maxWrite, BounceBuffer::kBlockBytes) / kAlign * kAlign);
}

Outbox::Cut Outbox::cutFor(const Put& put) const {
  Cut cut;
  if (put.bytes == 0 || put.target == kInlined) return cut;
  cut.copied = !wire_.sendsFrom(put.src, put.bytes);
  cut.inBlocks = cut.copied && put.bytes > BounceBuffer::kPayloadBytes;
  const std::size_t most =
      cut.inBlocks ? std::min(caps_.maxWrite, BounceBuffer::kBlockBytes) : caps_.maxWrite;
  const std::size_t stripes =
      std::clamp<std::size_t>(put.bytes / kStripe, 1, wire_.rails(put.peer));
  const std::size_t pieces = std::max(stripes, ceilDiv(put.bytes, most));
  cut.bytes = std::min(roundUp(ceilDiv(put.bytes, pieces), kAlign), most);
  cut.pieces = static_cast<std::uint32_t>(ceilDiv(put.bytes, cut.bytes));
  return cut;
}

bool Outbox::takeBlocks(const Cut& cut, Slot* slot) {
  if (static_cast<std::uint32_t>(std::popcount(freeBlocks_)) < cut.pieces) return false;
  for (std::uint32_t i = 0; i < cut.pieces; ++i) {
    const std::uint32_t lowest = freeBlocks_ & -freeBlocks_;
    slot->blocks |= lowest;
    freeBlocks_ ^= lowest;
  }
  return true;
}

PutResult Outbox::put(const Put& put, std::uint32_t arrival) {
  if (free_.empty() || !refused_.empty()) return PutResult::Again;
  const std::uint32_t index = free_.back();
  Slot& slot = slots_[index];
  const Cut cut = cutFor(put);
  if (cut.inBlocks && !takeBlocks(cut, &slot)) return PutResult::Again;
  free_.pop_back();
  slot.busy = true;
  slot.peer = put.peer;
  slot.cookie = put.cookie;
  slot.pending = cut.pieces != 0 && !cut.copied;
  slot.writes = cut.pieces + 1;
  slot.pieces = cut.pieces;
  const bool pending = slot.pending;
  failed_ = false;
  writePut(put, cut, index, arrival);
  if (!failed_) return pending ? PutResult::Pending : PutResult::Done;
  std::erase_if(refused_, [&](const WireWrite& w) { return w.peer == put.peer; });
  release(index);
  return PutResult::Failed;
}

// Copies what must be copied.
const std::byte* Outbox::sourceOf(const Put& put, const Cut& cut, std::uint32_t slot,
                                  std::uint32_t piece) const {
  const std::byte* const from = put.src + piece * cut.bytes;
  if (!cut.copied) return from;
  std::byte* to = bounce_.payload(slot) + piece * cut.bytes;
  if (slots_[slot].blocks != 0) {
    std::uint32_t rest = slots_[slot].blocks;
    for (std::uint32_t i = 0; i < piece; ++i) rest &= rest - 1;
    to = bounce_.block(static_cast<std::uint32_t>(std::countr_zero(rest)));
  }
  std::memcpy(to, from, std::min(cut.bytes, put.bytes - piece * cut.bytes));
  return to;
}

void Outbox::writePut(const Put& put, const Cut& cut, std::uint32_t slot, std::uint32_t arrival) {
  const std::uint32_t rails = wire_.rails(put.peer);
  const std::uint32_t first = firstRail_[put.peer];
  firstRail_[put.peer] = (first + 1) % rails;
  const std::uint32_t used = std::clamp(cut.pieces, 1u, rails);
  const std::uint32_t remoteCompletions = caps_.ordered ? used : cut.pieces + 1;
  const std::uint32_t immediate = ImmediateData{remoteCompletions, arrival}.packed();
  for (std::uint32_t i = 0; i < cut.pieces; ++i) {
    // The record goes by the first rail; of each other one the last piece tells.
    const bool quiet = caps_.ordered && (i % used == 0 || i + used < cut.pieces);
    write({.peer = put.peer,
           .rail = (first + i % used) % rails,
           .src = sourceOf(put, cut, slot, i),
           .bytes = std::min(cut.bytes, put.bytes - i * cut.bytes),
           .region = WireRegion::Window,
           .target = put.target - arena_ + i * cut.bytes,
           .quiet = quiet,
           .immediate = immediate,
           .cookie = cookieOf(slot, true)});
  }
  BounceBuffer::Record& record = bounce_.record(slot);
  record.flag = put.flag;
  record.tag = put.tag;
  const std::size_t inlined = cut.pieces == 0 ? put.bytes : 0;
  if (inlined != 0) std::memcpy(record.inlined, put.src, inlined);
  write({.peer = put.peer,
         .rail = first,
         .src = reinterpret_cast<const std::byte*>(&record),
         .bytes = offsetof(BounceBuffer::Record, inlined) + inlined,
         .region = WireRegion::Bounce,
         .target = BounceBuffer::recordAt(arrival),
         .immediate = immediate,
         .cookie = cookieOf(slot, false)});
}

// Once the wire has refused one, those after it queue up behind.
void Outbox::write(const WireWrite& write) {
  if (failed_) return;
  const WireResult result = refused_.empty() ? wire_.write(write) : WireResult::Again;
  if (result == WireResult::Again && WEFT_MARK("a write waits")) refused_.push_back(write);
  failed_ = result == WireResult::Failed;
}

bool Outbox::tell(std::uint32_t peer, ImmediateData immediate) {
  if (!refused_.empty()) return false;
  return wire_.write({.peer = peer,
                      .src = reinterpret_cast<const std::byte*>(&bounce_.record(0)),
                      .immediate = immediate.packed(),
                      .cookie = kTold}) != WireResult::Again;
}

// A write that fails now is of a link that is down: its LinkDown says so.
void Outbox::retry() {
  if (refused_.empty()) return;
  std::size_t taken = 0;
  while (taken < refused_.size() && wire_.write(refused_[taken]) != WireResult::Again) ++taken;
  refused_.erase(refused_.begin(), refused_.begin() + static_cast<std::ptrdiff_t>(taken));
}

bool Outbox::sent(std::uint64_t cookie, Event* done) {
  if ((cookie & kCookie) == kTold) return false;
  const auto index = static_cast<std::uint32_t>(cookie & kCookie) >> 1;
  Slot& slot = slots_[index];
  if (!slot.busy || slot.generation != cookie >> 32) return false;
  const bool isPiece = (cookie & 1) != 0;
  slot.pieces -= isPiece;
  const bool answers = slot.pending && slot.pieces == 0;
  if (answers) {
    slot.pending = false;
    *done = {Event::PutDone, slot.peer, slot.cookie};
  }
  if (--slot.writes == 0) release(index);
  return answers;
}

bool Outbox::forget(std::uint32_t peer, Event* failed) {
  std::erase_if(refused_, [&](const WireWrite& w) { return w.peer == peer; });
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (!slot.busy || slot.peer != peer) continue;
    const bool answers = slot.pending;
    *failed = {Event::Failed, peer, slot.cookie};
    release(i);
    if (answers) return true;
  }
  return false;
}

void Outbox::release(std::uint32_t index) {
  Slot& slot = slots_[index];
  freeBlocks_ |= slot.blocks;
  slot = {.generation = slot.generation + 1};
  free_.push_back(index);
}

}  // namespace weft::wire
