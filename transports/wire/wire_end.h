// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "transports/mapping.h"
#include "transports/wire/area_wire.h"
#include "transports/wire/inbox.h"
#include "transports/wire/outbox.h"
#include "transports/wire/wire.h"

namespace weft::wire {

// A communicator's end of a wire: its memory, what goes out and what comes in. It may live longer than
// the communicator, as peers may still write into it: until all whom it has met have said good-bye.
//
// Who calls holds the lock of the SharedWire, but for what says otherwise.
class WireEnd {
 public:
  struct Parts {
    std::uint32_t rank = 0;
    WindowLayout layout;
    std::shared_ptr<std::byte> window;  // and what keeps it there
    ControlPage* control = nullptr;     // null: where the window begins
    std::shared_ptr<Mapping> bounceMemory;
    std::shared_ptr<Mapping> bookMemory;  // bookBytes() of zeros
    std::vector<bool> peers;              // by rank: the wire leads there
  };
  // The peers' mirrors, then a byte an arrival slot for the inbox. Memory comes with what is heard.
  static std::size_t bookBytes(const WindowLayout& layout) {
    return layout.ranks * kMirrorBytes + BounceBuffer::arrivalsOf(layout);
  }
  static ImmediateValues valuesOf(const WindowLayout& layout) {
    return ImmediateValues(BounceBuffer::arrivalsOf(layout), layout.ranks);
  }
  // Where peers write, and what goes out: neither control page nor arrival slots, which this rank fills
  // itself.
  static Regions regionsOf(const Parts& parts);

  WireEnd(Parts parts, const AreaWire& wire);

  // Any time, without the lock.
  const Parts& parts() const { return parts_; }
  AreaWire& wire() { return wire_; }
  WindowView own() const { return {parts_.window.get(), parts_.layout, parts_.control}; }
  ControlPage& mirror(std::uint32_t peer) const {
    return *reinterpret_cast<ControlPage*>(parts_.bookMemory->base() + peer * kMirrorBytes);
  }
  bool hasNews() const { return news_.load(std::memory_order_relaxed); }

  // What the communicator does.
  PutResult put(const Put& put, Status* why);
  bool tell(std::uint32_t peer, std::uint64_t completed);
  int poll(Event* out, int max, Status* why);
  std::size_t outstanding() const { return outbox_.outstanding() + answers_.size(); }
  bool isPending(std::uint32_t peer) const { return outbox_.isPending(peer); }
  bool isDown(std::uint32_t peer) const { return !peers_[peer].down.ok(); }
  // Cut by this rank.
  void cut(std::uint32_t peer, Status* why);
  // The communicator is about to sleep.
  void expectNews() { news_.store(!answers_.empty(), std::memory_order_relaxed); }

  // What the wire does.
  void retry() { outbox_.retry(); }
  bool isRefused() const { return outbox_.isRefused(); }
  void sent(std::uint64_t cookie);
  void hear(std::uint32_t peer, ImmediateData immediate);
  void linkDown(std::uint32_t peer, const Status& why);
  // Tells the communicator, which may sleep.
  void ring();

  // The communicator has ended: it reads nothing more.
  void end() { ended_ = true; }
  // The wire is about to be closed, which all hear to whom it leads.
  void meetConnected();
  bool hasEnded() const { return ended_; }
  // To whom it has met and may still hear it, once nothing is on its way, or `anyway`. False: not to all
  // yet.
  bool sayGoodbye(bool anyway);
  // Nobody uses its memory any more. Not after a link is down, behind which things may be on their way.
  bool isDone() const;
  // As isDone(), or there is no hope for it.
  bool isQuiet() const;

 private:
  static constexpr std::size_t kMirrorBytes = roundUp(sizeof(ControlPage), kPage);

  void learn(std::uint32_t peer, std::uint64_t completed);
  void breakLink(std::uint32_t peer, const Status& why);
  PutResult putHere(const Put&);
  std::uint32_t arrivalOf(const Put& put) const {
    return static_cast<std::uint32_t>((put.arrival - parts_.layout.arrivals()) /
                                      sizeof(ArrivalSlot));
  }

  struct Peer {
    Status down;          // why its link is; OK: it is up
    bool met = false;     // something has gone there, or come
    bool left = false;    // it sends nothing more
    bool parted = false;  // this rank has told it the same
  };

  const Parts parts_;
  AreaWire wire_;
  const std::size_t maxPut_;
  BounceBuffer bounce_;
  Outbox outbox_;
  Inbox inbox_;
  std::vector<Peer> peers_;
  std::vector<Event> answers_;  // not told yet
  bool ended_ = false;          // the communicator has
  std::atomic<bool> news_{false};
};

}  // namespace weft::wire
