// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/wire_end.h"

#include <algorithm>
#include <cstring>

#include "transports/doorbell.h"

namespace weft::wire {

Regions WireEnd::regionsOf(const Parts& parts) {
  const WindowLayout& layout = parts.layout;
  const std::span<std::byte> bounce(parts.bounceMemory->base(), BounceBuffer::bytes(layout));
  const std::size_t records = BounceBuffer::recordBytes(layout);
  return {std::span(parts.window.get(), layout.size()).subspan(layout.arena()),
          bounce.first(records), bounce.subspan(records)};
}

WireEnd::WireEnd(Parts parts, const AreaWire& wire)
    : parts_([&] {
        if (parts.control == nullptr)
          parts.control = reinterpret_cast<ControlPage*>(parts.window.get());
        return std::move(parts);
      }()),
      wire_(wire),
      maxPut_(Outbox::maxPut(wire_.caps())),
      bounce_({parts_.bounceMemory->base(), BounceBuffer::bytes(parts_.layout)}, parts_.layout),
      outbox_(wire_, bounce_, parts_.layout),
      inbox_(bounce_, own().arrivals(),
             parts_.bookMemory->base() + parts_.layout.ranks * kMirrorBytes),
      peers_(parts_.layout.ranks) {
  answers_.reserve(2 * BounceBuffer::kSlots);
}

// To oneself.
PutResult WireEnd::putHere(const Put& put) {
  std::byte* const window = parts_.window.get();
  ArrivalSlot& arrival = *reinterpret_cast<ArrivalSlot*>(window + put.arrival);
  std::byte* const to = put.target == kInlined ? arrival.inlined : window + put.target;
  if (put.bytes != 0) std::memcpy(to, put.src, put.bytes);
  arrival.tag = put.tag;
  arrival.flag.store(put.flag, std::memory_order_release);
  return PutResult::Done;
}

PutResult WireEnd::put(const Put& put, Status* why) {
  if (put.peer == parts_.rank) return putHere(put);
  Peer& peer = peers_[put.peer];
  if (peer.left) [[unlikely]]
    return PutResult::Done;
  if (!peer.down.ok()) [[unlikely]] {
    *why = peer.down;
    return PutResult::Failed;
  }
  const bool elsewhere = put.bytes != 0 && put.target < parts_.layout.arena();
  if (put.direct || elsewhere || put.bytes > maxPut_) {
    *why = Status::error(Code::RemoteError, "put of ", put.bytes, " bytes to rank ", put.peer,
                         ": this transport carries ", maxPut_, " at once, to staging memory only");
    return PutResult::Failed;
  }
  peer.met = true;
  const PutResult result = outbox_.put(put, arrivalOf(put));
  if (result == PutResult::Failed) *why = wire_.lastError();
  return result;
}

bool WireEnd::tell(std::uint32_t to, std::uint64_t completed) {
  Peer& peer = peers_[to];
  if (peer.left || !peer.down.ok()) return true;
  peer.met = true;
  return outbox_.tell(to, wire_.values().completed(completed));
}

// `why`: the reason of the last that is no PutDone.
int WireEnd::poll(Event* out, int max, Status* why) {
  if (answers_.empty()) return 0;
  const int told = std::min(max, static_cast<int>(answers_.size()));
  std::copy_n(answers_.begin(), told, out);
  answers_.erase(answers_.begin(), answers_.begin() + told);
  for (int i = 0; i < told; ++i)
    if (out[i].kind != Event::PutDone) *why = peers_[out[i].peer].down;
  return told;
}

void WireEnd::sent(std::uint64_t cookie) {
  Event done;
  if (outbox_.sent(cookie, &done)) answers_.push_back(done);
}

void WireEnd::hear(std::uint32_t from, ImmediateData immediate) {
  Peer& peer = peers_[from];
  if (!peer.down.ok()) return;
  peer.met = true;
  const ImmediateValues& values = wire_.values();
  if (immediate == values.bye()) {
    peer.left = true;
    return;
  }
  if (ended_) return;
  if (immediate.count == 0) {
    // No rank is far from another, as they run the same invocations: so what is complete here tells
    // which of them is meant, however long the peer has told nothing.
    const std::uint64_t here = own().control().completed.load(std::memory_order_relaxed);
    return learn(from, values.epochNear(immediate.value, here));
  }
  if (!inbox_.makesSense(immediate, from, parts_.layout))
    return breakLink(
        from, Status::error(Code::RemoteError, "rank ", from,
                            " sent immediate data for arrival slot ", immediate.value, " of ",
                            bounce_.arrivals(), "; fix: the same libweft on all ranks"));
  const ArrivalSlot* const raised = inbox_.take(immediate);
  if (raised == nullptr || raised >= own().pairArrivals()) return;
  const std::uint64_t flag = raised->flag.load(std::memory_order_relaxed);
  if (completedOf(flag) <= epochOf(flag)) learn(from, completedOf(flag));
}

// These come in no order: the latest counts. A rank must learn it before it waits for the arrival
// that brought it, else two ranks could wait for each other.
void WireEnd::learn(std::uint32_t peer, std::uint64_t completed) {
  std::atomic<std::uint64_t>& known = mirror(peer).completed;
  if (completed > known.load(std::memory_order_relaxed))
    known.store(completed, std::memory_order_release);
}

void WireEnd::linkDown(std::uint32_t peer, const Status& why) {
  if (parts_.peers[peer]) breakLink(peer, why);
}

// A peer that has said good-bye needs nothing more: no loss.
void WireEnd::breakLink(std::uint32_t from, const Status& why) {
  Peer& peer = peers_[from];
  if (!peer.down.ok()) return;
  peer.down = within("", {static_cast<int>(from), ""}, why);
  Event answer;
  while (outbox_.forget(from, &answer)) {
    if (peer.left) answer.kind = Event::PutDone;
    answers_.push_back(answer);
  }
  if (!peer.left) answers_.push_back({Event::LinkDown, from, 0});
}

void WireEnd::cut(std::uint32_t peer, Status* why) {
  breakLink(peer,
            Status::error(Code::RemoteError, "put to rank ", peer, ": the link to it was cut"));
  *why = peers_[peer].down;
}

void WireEnd::ring() {
  if (ended_) return;
  news_.store(true, std::memory_order_release);
  doorbellRing(own().control());
}

void WireEnd::meetConnected() {
  for (std::uint32_t r = 0; r < peers_.size(); ++r)
    peers_[r].met |= parts_.peers[r] && wire_.isConnected(r);
}

bool WireEnd::sayGoodbye(bool anyway) {
  if (!anyway && outbox_.outstanding() != 0) return false;
  bool all = true;
  for (std::uint32_t r = 0; r < peers_.size(); ++r) {
    Peer& peer = peers_[r];
    if (!peer.met || peer.parted || !peer.down.ok() || !parts_.peers[r]) continue;
    peer.parted = outbox_.tell(r, wire_.values().bye());
    all &= peer.parted || peer.left;  // who has left may have closed its wire, too
  }
  return all;
}

bool WireEnd::isQuiet() const {
  return outbox_.outstanding() == 0 && std::ranges::all_of(peers_, [](const Peer& peer) {
           return !peer.met || peer.left || !peer.down.ok();
         });
}

bool WireEnd::isDone() const {
  return outbox_.outstanding() == 0 && std::ranges::all_of(peers_, [](const Peer& peer) {
           return !peer.met || (peer.parted && peer.left);
         });
}

}  // namespace weft::wire
