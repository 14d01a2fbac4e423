// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/segment.h"

namespace weft {

// The contract between the engine and what moves bytes. One suite, tests/contract, runs it on every
// transport and every decorator.
//
//  1. put() answers Done (the source is reusable, nothing else is said), Pending (exactly one
//     PutDone event with its cookie follows; the source must stay untouched until then), Again
//     (nothing happened; poll() and try again) or Failed (lastError() says why).
//  2. Exactly one arrival per accepted put: cells[tag].word of the target takes the put's word,
//     after ALL payload bytes, the stamp and the inlined bytes are visible to whoever loads it with
//     acquire. What lies behind the inlined bytes of a cell is undefined then.
//  3. There is NO order between any two puts, not even of the same link or length.
//  4. Target bytes are undefined until the arrival; payload is never polled.
//  5. A tag is unique among the puts in flight to a peer; the engine guarantees it.
//  6. All progress of puts happens in poll(), here and at the target, if caps().polls: keep polling
//     while outstanding() is not 0 and while waiting for an arrival.
//  7. After LinkDown or Failed nothing more arrives on that link.
//  8. A put of 0 bytes is legal: a signal.
//  9. Nothing blocks and nothing hangs; deadlines belong to the engine. No allocation in put and
//     poll once warm.
//
// 10. Only between attend() and leave(), and before the first leave(), may it be used: outside of
//     them it may make progress by itself, and keeps what it learns for the next poll(). attend(),
//     the use and leave() may be of different threads, one after another.
//
// One thread at a time uses a Transport.
enum class PutResult : std::uint8_t { Done, Pending, Again, Failed };

struct Put {
  std::uint32_t peer = 0;
  std::uint64_t cell = 0;  // target cell, as byte offset in the peer's segment
  std::uint64_t word = 0;  // arrivalWord()
  std::uint64_t stamp = 0;
  const std::byte* src = nullptr;
  std::size_t bytes = 0;     // <= kInlineBytes and target == kInCell: travels inside the cell
  std::uint64_t target = 0;  // byte offset in the peer's segment, or kInCell, or see `direct`
  bool direct = false;       // target is an address in the peer's own memory (caps().direct)
  std::uint64_t cookie = 0;
};
inline constexpr std::uint64_t kInCell = ~std::uint64_t{0};

struct Event {
  enum Kind : std::uint8_t { PutDone, Failed, LinkDown } kind = PutDone;
  std::uint32_t peer = 0;
  std::uint64_t cookie = 0;
};

struct Caps {
  bool maps = false;       // view(peer) gives the peer's segment: the engine may store there itself
  bool direct = false;     // puts into a peer's own memory, by address, work
  bool shares = false;     // share() works for memory from weftMemAlloc, on all ranks
  bool sharesAll = false;  // share() works for all memory: the ranks are threads of one process
  bool polls = false;      // arrivals and PutDone need poll()
  std::size_t maxPut = ~std::size_t{0};
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual const char* name() const = 0;
  virtual Caps caps() const = 0;
  virtual const SegmentLayout& layout() const = 0;
  virtual SegmentView own() const = 0;
  // The peer's whole segment if caps().maps, else empty.
  virtual SegmentView view(std::uint32_t peer) const = 0;
  // The peer's control page, or a mirror of it.
  virtual ControlPage* control(std::uint32_t peer) const = 0;
  // True: control() gives a mirror of the peer's page, in memory of this rank. The transport brings
  // it what the peer tell()s; the rest is for whoever else hears of that peer.
  virtual bool isMirrored(std::uint32_t) const { return false; }
  // What carries bytes to that peer, in a few words for people.
  virtual std::string describe(std::uint32_t) const { return name(); }
  // A descriptor that becomes readable when the peer's process ends, or -1 (threads, other hosts).
  virtual int deathFd(std::uint32_t peer) const = 0;
  // The peer's open /proc/self/stat, to be read with pread: state and flags, also across pid
  // namespaces; or -1.
  virtual int statFd(std::uint32_t peer) const = 0;

  // How the ranks of this host reach memory of this one by loads and stores: a reference for their
  // reach(), or 0 where they cannot. All ranks of a communicator can or cannot, whatever the rank.
  virtual std::uint64_t share(const void* memory, std::size_t bytes) const = 0;
  // Where what `peer` shares lies here. It stays valid until the peer has left the call that it
  // gave the reference in; what may be read or written when is the engine's business.
  virtual std::byte* reach(std::uint32_t peer, std::uint64_t reference) const = 0;

  // Copies by the kernel from and to a peer's own memory, by its address there; caps().direct.
  // False: lastError() says why.
  virtual bool fetch(std::uint32_t peer, std::uint64_t from, void* to, std::size_t bytes) = 0;
  virtual bool deposit(std::uint32_t peer, std::uint64_t to, const void* from,
                       std::size_t bytes) = 0;

  // The caller comes to use it, or stays away for an unknown time. In pairs.
  virtual void attend() {}
  virtual void leave() {}

  virtual PutResult put(const Put&) = 0;
  // To a peer whose pages are mirrored: this rank has completed all invocations up to there. It
  // arrives some time, unless a later one overtakes it. False: not now; poll() and try again.
  virtual bool tell(std::uint32_t /*peer*/, std::uint64_t /*completed*/) { return true; }
  virtual int poll(Event* out, int max) = 0;
  virtual std::size_t outstanding() const = 0;
  // Wakes the peer if it sleeps on its doorbell; put() does so by itself.
  virtual void wake(std::uint32_t peer) = 0;
  // Cuts this end of the link: later puts to the peer fail, nothing more of ours arrives there.
  virtual void sever(std::uint32_t peer) = 0;
  // The link to that peer is down: nothing is put there any more.
  virtual bool isDown(std::uint32_t) const { return false; }
  virtual const std::string& lastError() const = 0;
};

// The time in which its owner uses a transport.
class Attendance {
 public:
  explicit Attendance(Transport& transport) : transport_(transport) { transport.attend(); }
  ~Attendance() { transport_.leave(); }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

 private:
  Transport& transport_;
};

// All-gather of a small blob over the control plane (bootstrap or a parent communicator).
using Exchange = std::function<Status(std::span<const std::byte> mine,
                                      std::vector<std::vector<std::byte>>* all)>;

// Makers, one per folder. `exchange` is called the same number of times on every rank.
struct TransportSetup {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  SegmentLayout layout;
  Exchange exchange;
  bool allowDirect = true;  // knob WEFT_CMA
  int timeoutMs = 120000;
  std::vector<bool> peers;         // by rank: those to be reached by a wire; empty: all
  std::vector<std::string> names;  // by rank, for errors: "rank 3 (host b, pid 71)"
  // How far the device on a bus ("0000:00:06.0") is from this rank, 0 = near, -1 = unknown; empty:
  // as the kernel says.
  std::function<int(const std::string& busId)> distanceOf;
};
Status makeLocal(const TransportSetup&,
                 std::unique_ptr<Transport>* out);  // ranks: threads of this process
Status makeShm(const TransportSetup&,
               std::unique_ptr<Transport>* out);  // ranks: processes of this host
// Seeded faults over any transport; see transports/faulty/faulty.h for the knobs in `spec`.
Status makeFaulty(std::unique_ptr<Transport> inner, const std::string& spec,
                  std::unique_ptr<Transport>* out);

}  // namespace weft
