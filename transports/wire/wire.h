// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transports/transport.h"

namespace weft::wire {

using namespace transport;

// What joins ranks that share no memory: it writes into registered memory of a peer and then tells
// it so with 32 bits of immediate data: a remote completion. verbs/ and ofi/ implement it;
// WireTransport makes a Transport of any Wire.
//
//  1. write() answers Accepted (exactly one Sent with its cookie follows; the source must stay
//     untouched until then), Again (nothing happened; poll() and try again) or Failed: lastError()
//     says why.
//  2. Exactly one RemoteCompletion at the target for each accepted write, after all its bytes
//     are visible there; none for a quiet one.
//  3. There is NO order between any two writes, not even of one rail, unless caps().ordered: then
//     the bytes of a quiet write are visible before the completion of a later write of the same
//     peer and rail.
//  4. A write of 0 bytes is legal: immediate data alone.
//  5. All progress happens in poll(), at both ends: whoever has sent or expects anything keeps
//     polling.
//  6. After LinkDown nothing more arrives on that link and write() to it fails; accepted writes may
//     stay without an answer. A poll gives at most one LinkDown, as its last event, and lastError()
//     then says who, what, where (device, port, both addresses), in one line.
//  7. At most WireSetup::completionsPerPeer of one peer, rail and area are on their way or not yet
//     polled: the caller sees to it, so a wire that must post receives can post enough of them once
//     and renew each as it polls it. Where several areas are in use at once, more may come: they wait.
//  8. Nothing blocks, nothing allocates once warm.
//
// One thread at a time, not always the same.
//
// Peers write into two regions, no more than they must: of the window the staging arenas, and of the
// bounce buffer the records.
enum class WireRegion : std::uint8_t { Window, Bounce };
inline constexpr std::size_t kWireRegions = 2;

// Each communicator on a wire has two of its own, its area. Area 0 is that of whoever made the wire.
struct WireWrite {
  std::uint32_t area = 0;  // a number of this rank's
  std::uint32_t peer = 0;
  std::uint32_t rail = 0;          // < rails(peer)
  const std::byte* src = nullptr;  // sendsFrom() it
  std::size_t bytes = 0;           // <= caps().maxWrite
  WireRegion region = WireRegion::Window;
  std::uint64_t target = 0;     // byte offset in that region of the peer
  bool quiet = false;           // no remote completion; only if caps().ordered
  std::uint32_t immediate = 0;  // 32 bits of immediate data, as they are
  std::uint64_t cookie = 0;

  bool endsWithin(std::uint64_t regionBytes) const {
    return bytes <= regionBytes && target <= regionBytes - bytes;
  }
};

// The error of a write that breaks the contract.
inline Status refusal(const char* wire, const WireWrite& write, const char* why) {
  return Status::error(Code::RemoteError, wire, ": a write of ", write.bytes, " bytes to rank ",
                       write.peer, ", rail ", write.rail, ", offset ", write.target,
                       " is refused: ", why);
}

enum class WireResult : std::uint8_t { Accepted, Again, Failed };

struct WireEvent {
  enum Kind : std::uint8_t { Sent, RemoteCompletion, LinkDown } kind = Sent;
  std::uint32_t peer = 0;
  std::uint32_t immediate = 0;
  std::uint64_t cookie = 0;
};

// By WireRegion; then, at kOutgoing, what this rank sends from and no peer writes into.
inline constexpr std::size_t kOutgoing = kWireRegions;
using Regions = std::array<std::span<std::byte>, kWireRegions + 1>;

inline bool contains(std::span<const std::byte> region, const std::byte* memory,
                     std::size_t bytes) {
  return memory >= region.data() && bytes <= region.size() &&
         memory <= region.data() + (region.size() - bytes);
}

// The memory of one more communicator, of some of the ranks.
struct WireArea {
  Regions regions;  // of this rank
  WindowLayout layout;
  std::vector<std::uint32_t> peers;  // by rank of it: its number on this wire
};

struct WireCaps {
  std::size_t maxWrite = 0;
  bool ordered = false;
  bool manual = false;  // peers may need a poll() here, even if this rank waits for nothing
  bool sleeps = false;  // arm() works
};

class Wire {
 public:
  virtual ~Wire() = default;             // only in the process that made it
  virtual const char* name() const = 0;  // "verbs", "ofi"
  virtual WireCaps caps() const = 0;
  // How many ways there are to that peer (ports, NICs) that a large message may be striped over.
  virtual std::uint32_t rails(std::uint32_t peer) const = 0;
  // Has anything gone to that peer, or come from it? Wires that join all in advance need not know.
  virtual bool isConnected(std::uint32_t /*peer*/) const { return true; }
  // One line for people: what carries bytes to that peer: "rxe0:1 -> rxe3:1, 10.0.0.1 -> 10.0.0.2".
  virtual std::string describe(std::uint32_t peer) const = 0;

  // Of a contact: what the other ranks of an area must know of a rank's part of it. 0: this wire has
  // but one area.
  virtual std::size_t contactBytes() const { return 0; }
  // Adds an area.
  virtual Status openArea(std::uint32_t /*number*/, const WireArea& /*area*/,
                          std::span<std::byte> /*contact*/) {
    return {};
  }
  // By rank of the area: their contacts.
  virtual Status joinArea(std::uint32_t /*number*/,
                          std::span<const std::span<const std::byte>> /*contacts*/) {
    return {};
  }
  // Nothing is on its way from there or to there. It may never have been opened.
  virtual void closeArea(std::uint32_t /*number*/) {}

  // May a write of that area read from there? Its regions here, or all memory if it need not be
  // registered.
  virtual bool sendsFrom(const std::byte* memory, std::size_t bytes, std::uint32_t area) const = 0;
  virtual WireResult write(const WireWrite&) = 0;
  virtual int poll(WireEvent* out, int max) = 0;
  // Before a sleep, if caps().sleeps: adds descriptors of which one becomes readable, also for
  // another thread, when poll() may find something; where nobody `waits` for what comes, when a
  // peer may need poll(). False: it may now. Calls of poll() end that.
  virtual bool arm(std::vector<pollfd>* /*descriptors*/, bool /*waits*/) { return false; }
  // Is there something for poll() to do now and then of which no descriptor tells?
  virtual bool isUnsettled() const { return false; }
  // Cuts this end of the link, for good.
  virtual void sever(std::uint32_t peer) = 0;
  virtual const Status& lastError() const = 0;
};

// What a maker of a Wire is given: the base, with `peers` (all ranks; false for oneself) and
// `names` filled in, and what follows. Every rank of the communicator calls the maker, also one
// that reaches nobody through this wire. If one rank fails, all get its text (transports/gather.h).
struct WireSetup : TransportSetup {
  Regions regions;  // of this rank
  std::uint32_t completionsPerPeer = 0;
};

}  // namespace weft::wire
