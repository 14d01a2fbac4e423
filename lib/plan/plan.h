// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reduce/reduce.h"
#include "transports/window.h"
#include "tune/expectation.h"

namespace weft::plan {

// Bytes at once of CMA copies of shared buffers: enough to pay for the call, few enough for the
// cache.
inline constexpr std::size_t kTileBytes = 64 << 10;

// Where an operand lies. Offsets are in bytes from the base; In and Out also move by one segment
// for each segment of a large message.
enum class Base : std::uint8_t {
  In,         // the caller's send buffer
  Out,        // the caller's receive buffer
  Arena,      // own staging arena, of the invocation's lane
  Arrivals,   // own arrival slots, of the invocation's lane: payloads small enough to travel inside
  Ring,       // own staging memory of rings, from the invocation's place on
  PeerIn,     // the send buffer of Place::peer, where ranks share their buffers
  PeerOut,    // its receive buffer
  Published,  // what it, or this rank, publishes, from the invocation's place on
};

struct Place {
  Base base = Base::In;
  std::uint32_t peer = 0;  // PeerIn, PeerOut, Published
  std::uint64_t offset = 0;
  bool isPeers() const { return base >= Base::PeerIn; }
  bool isPeersBuffer() const { return base == Base::PeerIn || base == Base::PeerOut; }
  friend bool operator==(const Place&, const Place&) = default;
};

// One op of a schedule with bytes bound to it. Its length in segment s is
// clamp(limit - s * segmentBytes, 0, max): the last segment, short chunks and empty ones need no
// case of their own.
struct BoundOp {
  enum class Kind : std::uint8_t {
    Put,
    PutInline,
    PutDirect,
    Store,  // into a peer's buffer; a Raise follows
    Raise,  // the arrival of what has been stored
    Signal,
    Wait,
    Copy,
    Fold,
    Scale,
    Finish,
    Publish,  // a Copy to where plan.readers read it
  };
  Kind kind;
  bool drain = false;             // writes what an earlier Put reads: wait until those are done
  bool finish = false;            // Fold: divide by plan.divisor while the sum is in registers, or
                                  // leave the sum to the launch's epilogue
  bool stream = false;            // Copy, Fold: store past the cache
  std::uint32_t peer = 0;         // Put*, Signal: the target; Wait: the rank that puts
  std::uint32_t arrival = 0;      // Put*, Signal, Wait: index of the arrival slot within the lane
  std::uint32_t clearToSend = 0;  // PutDirect: in which arrival slot the address of Out came
  std::uint32_t operands = 0;     // Fold: plan.operands[first .. first + operands)
  std::uint32_t first = 0;
  std::uint32_t spread = 0;  // Copy, Fold: the result also goes to plan.operands[firstSpread ..]
  std::uint32_t firstSpread = 0;
  std::uint32_t crossings = 0;  // how many peers' buffers it reads or stores to
  Place src;                    // Put*, Copy, Scale, Publish
  Place dst;                    // Put: offset in the peer's arena; PutDirect: in the peer's Out
  std::uint64_t max = 0;
  std::uint64_t limit = 0;
};

inline const char* nameOf(BoundOp::Kind kind) {
  constexpr const char* kNames[] = {"Put",  "PutInline", "PutDirect", "Store", "Raise",  "Signal",
                                    "Wait", "Copy",      "Fold",      "Scale", "Finish", "Publish"};
  return kNames[static_cast<std::size_t>(kind)];
}

// A schedule bound to a rank, a count and a type: what the hot path runs. Immutable.
struct Plan {
  std::string algorithm;
  std::vector<BoundOp> ops;
  std::vector<Place> operands;
  reduce::FoldFn fold = nullptr;
  reduce::SpreadFn spread = nullptr;  // null: there is no such kernel
  reduce::ScaleFn scale = nullptr;
  reduce::DType type = reduce::DType::U8;
  std::size_t elementBytes = 1;
  bool callsEpilogue = false;  // RedOp::Epilogue
  std::uint64_t divisor = 1;   // Finish, and Fold with `finish`: ranks for avg, else 1
  std::uint64_t segments = 1;
  std::uint64_t segmentBytes = 0;  // how far In and Out move from one segment to the next
  std::uint32_t lead = 0;          // ops of a segment before the next one begins
  std::uint64_t fingerprint = 0;   // of everything that ranks must agree on
  std::uint64_t what = 0;          // CallRecord::what
  std::uint64_t count = 0;
  tune::Expected expected;
  std::vector<std::uint32_t> writers;  // the other ranks that put into this one
  std::vector<std::uint32_t> readers;  // those that read what this one publishes
  bool runsAhead = false;              // a rank may be through before all others have made the call
  bool inRing = false;                 // an invocation has one message a pair, in the pair's ring
  std::uint64_t stageBytes = 0;  // there, from the room of an invocation's messages to the next's
  std::uint32_t depth = transport::kMaxLanes;  // invocations later its slots are used again
  mutable bool hasMemory = false;  // all that it touches in the windows has (engine/footprint.h)

  // Plans on shared buffers begin with `tells` signals and the waits for those of the other ranks,
  // `opening` ops in all. In them each rank says whether its own buffers can be reached. Where one
  // cannot, all run `otherwise`, which may be on shared buffers, too, by CMA copies.
  std::uint32_t tells = 0;
  std::uint32_t opening = 0;
  bool cmaCopies = false;      // peers' buffers that are not shared are reached by CMA
  std::uint64_t sharedIn = 0;  // bytes from the start of In that peers read, 0: none
  std::uint64_t sharedOut = 0;
  std::unique_ptr<const Plan> otherwise;  // null: the ranks share all memory

  std::size_t bytes() const {
    return sizeof(*this) + ops.capacity() * sizeof(BoundOp) + operands.capacity() * sizeof(Place) +
           (writers.capacity() + readers.capacity()) * sizeof(std::uint32_t) +
           (otherwise ? otherwise->bytes() : 0);
  }
};

}  // namespace weft::plan
