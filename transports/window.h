// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// The memory that one rank offers to its peers: control page, arrival slots, staging arena. The
// same layout serves threads, processes and, as registered memory, networks.
namespace weft::transport {

inline constexpr std::size_t kLine = 64;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint32_t kMaxLanes = 4;     // invocations that may be in flight
inline constexpr std::uint32_t kRing = 128;       // short rooted ones that may be
inline constexpr std::uint32_t kRingStages = 32;  // too long for an arrival slot, at least
inline constexpr std::size_t kMostRingBytes = std::size_t{4} << 10;       // of such a message
inline constexpr std::size_t kMostLongRingBytes = std::size_t{64} << 10;  // if ranks share cores
static_assert(kRingStages >= kMaxLanes);
inline constexpr std::size_t kInlineBytes = 48;  // payload that travels inside an arrival slot
inline constexpr std::uint32_t kWindowMagic = 0x77656654;
inline constexpr std::uint32_t kWindowVersion = 7;
inline constexpr std::size_t kTokenBytes = 16;

constexpr std::size_t roundUp(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// One arrival: flag, fingerprint and a small payload in one cache line, so that a short message
// costs one line transfer. Written by the peer that puts, `flag` last; read by the window's owner.
struct alignas(kLine) ArrivalSlot {
  std::atomic<std::uint64_t> flag{0};  // arrivalFlag(); release store, acquire load
  std::uint64_t tag = 0;               // fingerprint of the sender's call
  std::byte inlined[kInlineBytes] = {};
};
static_assert(sizeof(ArrivalSlot) == kLine);

// The flag's value: which invocation (epoch, from 1), and how far the sender's completed
// invocations lag behind it. The lag is the credit: it tells what the sender no longer reads.
inline constexpr std::uint64_t kMaxLag = 255;
inline std::uint64_t arrivalFlag(std::uint64_t epoch, std::uint64_t completed) {
  const std::uint64_t lag = epoch - completed;
  return epoch << 8 | (lag < kMaxLag ? lag : kMaxLag);
}
inline std::uint64_t epochOf(std::uint64_t flag) { return flag >> 8; }
// Everything up to here was complete at the sender; 0 if the lag did not fit.
inline std::uint64_t completedOf(std::uint64_t flag) {
  const std::uint64_t lag = flag & kMaxLag;
  return lag == kMaxLag ? 0 : epochOf(flag) - lag;
}

// What a rank called, for the sentence that names both sides of a mismatch. Written by the owner
// before it sends anything of that call; a record is whole if `seq` is equal before and after.
struct alignas(kLine / 2) CallRecord {
  std::atomic<std::uint64_t> seq{0};
  std::atomic<std::uint64_t> fingerprint{0};
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> what{0};  // kind | type << 8 | op << 16 | root << 32
};

inline constexpr std::size_t kCallRecords = 2 * kRing;
inline constexpr std::size_t kFirstErrorBytes = 2000;

// The first failure that anybody declared, packed (base/status.h); one for a communicator, on rank
// 0's page, so that all survivors report the same cause.
struct alignas(kLine) FirstError {
  enum State : std::uint32_t { None, Writing, Published };
  std::atomic<std::uint32_t> state{None};
  std::uint32_t length = 0;
  char packed[kFirstErrorBytes] = {};
};

struct ControlPage {
  std::uint32_t magic = kWindowMagic;
  std::uint32_t version = kWindowVersion;
  std::int32_t rank = -1;
  std::int32_t pid = 0;
  // Random, also told to the peers in another way: proves that some memory is this page.
  std::byte token[kTokenBytes] = {};
  std::atomic<std::uint64_t> probe{0};  // target of trial writes at set-up

  // Owner: all invocations up to this one are complete here, so their slots may be overwritten.
  alignas(kLine) std::atomic<std::uint64_t> completed{0};
  // Owner sleeps in a futex on `doorbell` while `sleeping` is 1; a peer adds to it and wakes it.
  alignas(kLine) std::atomic<std::uint32_t> doorbell{0};
  std::atomic<std::uint32_t> sleeping{0};
  // Owner: 1 = whoever stores something that the owner may sleep on must fence before it reads
  // `sleeping` (transports/doorbell.h does it).
  std::atomic<std::uint32_t> ringFence{1};
  // Owner: 1 + the core on which it last waited: those who wait for it see whether it needs theirs.
  alignas(kLine) std::atomic<std::uint32_t> core{0};
  // Owner: number of the call in progress or last made.
  alignas(kLine) std::atomic<std::uint64_t> callSeq{0};
  std::atomic<std::uint32_t> inCall{0};
  std::atomic<std::uint32_t> inPairs{0};  // in a batch of sends and receives
  std::atomic<std::uint32_t> left{0};     // 1: destroyed its end; it will make no further call
  alignas(kLine)
      FirstError firstError;  // on a line of its own: every call looks whether there is one
  CallRecord calls[kCallRecords];
};

// Which arrival slots each of a rank's peers raises. The first `dense` of all peers lie side by side,
// so that short calls, which need no more, share few pages. The others follow, peer by peer.
struct ArrivalRegions {
  std::uint32_t ranks = 1;
  std::uint32_t perPeer = 0;
  std::uint32_t dense = 0;

  std::uint32_t slotOf(std::uint32_t writer, std::uint32_t index) const {
    if (index < dense) return writer * dense + index;
    return ranks * dense + writer * (perPeer - dense) + (index - dense);
  }
  std::uint32_t writerOf(std::uint32_t slot) const {
    return slot < ranks * dense ? slot / dense : (slot - ranks * dense) / (perPeer - dense);
  }
  std::uint32_t indexOf(std::uint32_t slot) const {
    return slot < ranks * dense ? slot % dense : dense + (slot - ranks * dense) % (perPeer - dense);
  }
};

// Room for messages of short rooted calls that do not fit into an arrival slot: an invocation has
// one of each peer, by its number.
struct Stages {
  std::uint32_t count = 0;  // a power of two, or none
  std::size_t bytes = 0;    // of each

  std::size_t size() const { return count * bytes; }
  bool operator==(const Stages&) const = default;
};

// Of each peer. Those of longer messages lie behind the others: invocations that are on their way
// may be of both. A call's segments may be several longer ones, for which a rank has kMaxLanes, so there
// is room for as many at least.
struct RingStages {
  RingStages() = default;
  RingStages(Stages ofShorter, Stages ofLonger)
      : shorter(ofShorter),
        longer(ofLonger),
        beforeLonger(ofShorter.size()),
        bytes(ofShorter.size() + ofLonger.size()) {}

  Stages shorter;
  Stages longer;
  // Where they lie stays as it is if fewer are used.
  std::size_t beforeLonger = 0;
  std::size_t bytes = 0;  // of a peer's region

  std::size_t beginOf(const Stages& stages) const { return &stages == &longer ? beforeLonger : 0; }
  // Null: it is too long.
  const Stages* stagesFor(std::size_t message) const {
    for (const Stages* stages : {&shorter, &longer})
      if (stages->count != 0 && message <= stages->bytes) return stages;
    return nullptr;
  }
  // Null: there are no such.
  const Stages* stagesOf(std::size_t stageBytes) const {
    const Stages* const stages = stagesFor(stageBytes);
    return stages != nullptr && stages->bytes == stageBytes ? stages : nullptr;
  }
  bool operator==(const RingStages&) const = default;
};

// Where things lie in every rank's window. Equal on all ranks of a communicator. What has pages
// from the beginning is the control page and the dense arrival slots; those of the rest come with
// the plans and messages that use it (Transport::commit).
struct WindowLayout {
  std::uint32_t ranks = 0;
  std::uint32_t arrivalSlots = 0;      // of collectives, per lane
  std::uint32_t dense = 0;             // of those, of each peer: see ArrivalRegions
  std::uint32_t pairArrivalSlots = 0;  // of what pairs of ranks do, for all peers together
  std::uint32_t ring = 0;              // of those, for each peer's short rooted calls: the first
  std::uint32_t apart = 0;             // 1: each rank keeps to its parts of the others' windows
  std::size_t arenaBytes = 0;          // staging arena per lane
  std::size_t pairBytes = 0;           // point-to-point staging, for all peers together
  RingStages ringStages = {};
  std::uint32_t publishes =
      0;  // 1: each lane also has a region of staging for what its owner publishes
  std::uint64_t epochsBefore = 0;  // tests begin late, as after months: counters begin here

  std::size_t arrivals() const { return roundUp(sizeof(ControlPage), kPage); }
  std::size_t pairArrivals() const { return arrivals() + kMaxLanes * laneOfArrivals(); }
  std::size_t arena() const {
    return roundUp(pairArrivals() + std::size_t{pairArrivalSlots} * sizeof(ArrivalSlot), kPage);
  }
  std::size_t pairArena() const { return arena() + kMaxLanes * arenaBytes; }
  std::size_t ringArena() const { return roundUp(pairArena() + pairBytes, kPage); }
  std::size_t published() const { return roundUp(ringArena() + ranks * ringStages.bytes, kPage); }
  std::size_t publishedBytes() const {  // of a lane
    return publishes != 0 ? roundUp(stagingRegion(), kPage) : 0;
  }
  std::size_t size() const { return published() + kMaxLanes * publishedBytes(); }

  // Of one writer, in a lane's arena.
  std::size_t stagingRegion() const { return arenaBytes / ranks / kLine * kLine; }
  ArrivalRegions regions() const { return {ranks, arrivalSlots / ranks, dense}; }
  // Of each lane, from its first arrival slot on.
  std::size_t denseBytes() const { return std::size_t{ranks} * dense * sizeof(ArrivalSlot); }
  std::size_t laneOfArrivals() const { return std::size_t{arrivalSlots} * sizeof(ArrivalSlot); }

  // Do these bytes of the staging arenas, counted from arena() on, lie in one part of `writer`'s?
  bool isStagedBy(std::uint32_t writer, std::uint64_t from, std::uint64_t bytes) const {
    const std::uint64_t ofLanes = kMaxLanes * arenaBytes;
    const bool ofLane = from < ofLanes;
    const std::uint64_t part = ofLane ? stagingRegion() : pairBytes / ranks;
    const std::uint64_t at = (ofLane ? from % arenaBytes : from - ofLanes) - writer * part;
    return at < part && bytes <= part - at;
  }
  // Who raises that arrival slot, counted over both kinds.
  std::uint64_t raisedBy(std::uint64_t arrival) const {
    const std::uint64_t ofLanes = std::uint64_t{kMaxLanes} * arrivalSlots;
    if (arrival >= ofLanes) return (arrival - ofLanes) / (pairArrivalSlots / ranks);
    return regions().writerOf(static_cast<std::uint32_t>(arrival % arrivalSlots));
  }

  bool operator==(const WindowLayout&) const = default;
};

// A mapped window, own or a peer's.
class WindowView {
 public:
  WindowView() = default;
  WindowView(std::byte* base, const WindowLayout& layout)
      : WindowView(base, layout, reinterpret_cast<ControlPage*>(base)) {}
  // Whose control page lies elsewhere.
  WindowView(std::byte* base, const WindowLayout& layout, ControlPage* control)
      : base_(base), layout_(&layout), control_(control) {}

  explicit operator bool() const { return base_ != nullptr; }
  std::byte* base() const { return base_; }
  ControlPage& control() const { return *control_; }
  ArrivalSlot* arrivals() const {
    return reinterpret_cast<ArrivalSlot*>(base_ + layout_->arrivals());
  }
  ArrivalSlot* pairArrivals() const {
    return reinterpret_cast<ArrivalSlot*>(base_ + layout_->pairArrivals());
  }
  std::byte* arena() const { return base_ + layout_->arena(); }
  std::byte* pairArena() const { return base_ + layout_->pairArena(); }
  std::byte* ringArena() const { return base_ + layout_->ringArena(); }

 private:
  std::byte* base_ = nullptr;
  const WindowLayout* layout_ = nullptr;
  ControlPage* control_ = nullptr;
};

}  // namespace weft::transport
