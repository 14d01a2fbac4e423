// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "transports/window.h"

namespace weft::transport {

// The contract between the engine and what moves bytes. One suite, tests/contract, runs it on every
// transport and every decorator.
//
//  1. put() answers Done (the source is reusable, nothing else is said), Pending (exactly one
//     PutDone event with its cookie follows; the source must stay untouched until then), Again
//     (nothing happened; poll() and try again) or Failed (lastError() says why).
//  2. Exactly one arrival per accepted put: the flag of the target's arrival slot takes the put's,
//     after ALL payload bytes, the tag and the inlined bytes are visible to whoever loads it with
//     acquire. What lies behind the inlined bytes of an arrival slot is undefined then.
//  3. There is NO order between any two puts, not even of the same link or length.
//  4. Target bytes are undefined until the arrival; payload is never polled.
//  5. An arrival slot has one put in flight at a time; the engine guarantees it.
//  6. All progress of puts happens in poll(), here and at the target, if caps().polls: keep polling
//     while outstanding() is not 0 and while waiting for an arrival.
//  7. After LinkDown or Failed nothing more arrives on that link.
//  8. A put of 0 bytes is legal: a signal.
//  9. Nothing blocks and nothing hangs; deadlines belong to the engine. No allocation in put and
//     poll once warm.
//
// 10. It may be used only before the first releaseProgress(), and between acquireProgress() and
//     releaseProgress() or handOver(): outside of them it may make progress by itself, and keeps what it learns
//     for the next poll(). All three may be of different threads, one after another.
//
// One thread at a time uses a Transport.
enum class PutResult : std::uint8_t { Done, Pending, Again, Failed };

struct Put {
  std::uint32_t peer = 0;
  std::uint64_t arrival = 0;  // target arrival slot, as byte offset in the peer's window
  std::uint64_t flag = 0;     // arrivalFlag()
  std::uint64_t tag = 0;
  const std::byte* src = nullptr;
  std::size_t bytes = 0;  // <= kInlineBytes and target == kInlined: travels inside the arrival slot
  std::uint64_t target = 0;  // byte offset in the peer's window, or kInlined, or see `direct`
  bool direct = false;       // target is an address in the peer's own memory (caps().direct)
  std::uint64_t cookie = 0;
};
inline constexpr std::uint64_t kInlined = ~std::uint64_t{0};

struct Event {
  enum Kind : std::uint8_t { PutDone, Failed, LinkDown } kind = PutDone;
  std::uint32_t peer = 0;
  std::uint64_t cookie = 0;
};

struct Caps {
  bool direct = false;     // puts into a peer's own memory, by address, work
  bool shares = false;     // share() works for memory from weftMemAlloc, on all ranks
  bool sharesAll = false;  // share() works for all memory: the ranks are threads of one process
  bool maps = false;       // mapped() of all ranks, on all ranks
  bool mirrors = false;    // isMirrored() of some ranks to each other, the same on all ranks
  bool polls = false;      // arrivals and PutDone need poll()
  bool sleeps = false;     // it polls, but who waits may sleep: handOver()
  std::size_t maxPut = ~std::size_t{0};
};

struct TransportSetup;

class Transport {
 public:
  virtual ~Transport() = default;

  virtual const char* name() const = 0;
  virtual Caps caps() const = 0;
  virtual const WindowLayout& layout() const = 0;
  virtual WindowView own() const = 0;
  // The peer's whole window where it is mapped here, for decorators that move the bytes themselves;
  // else empty.
  virtual WindowView view(std::uint32_t /*peer*/) const { return {}; }
  // The peer's window, to read what the peer keeps there for others; null where it is not mapped.
  virtual const std::byte* mapped(std::uint32_t peer) const { return view(peer).base(); }
  // The memory of own(), which keeps it there, for others that lead to it; null: they can't.
  virtual std::shared_ptr<std::byte> window() const { return {}; }
  // The peer's control page, or a mirror of it.
  virtual ControlPage* control(std::uint32_t peer) const = 0;
  // True: control() gives a mirror of the peer's page, in memory of this rank. The wire updates
  // `completed` by what the peer tell()s; the rest comes in other ways (lib/control).
  virtual bool isMirrored(std::uint32_t) const { return false; }
  // What carries bytes to that peer, in a few words for people.
  virtual std::string describe(std::uint32_t) const { return name(); }
  // A descriptor that becomes readable when the peer's process ends, or -1 (threads, other hosts).
  virtual int deathFd(std::uint32_t /*peer*/) const { return -1; }
  // The peer's open /proc/self/stat, for pread(2), which works across pid namespaces; or -1.
  virtual int statFd(std::uint32_t /*peer*/) const { return -1; }

  // How the ranks of this host reach memory of this one by loads and stores: a reference for their
  // reach(), or 0 where they cannot, which is the same on all ranks.
  virtual std::uint64_t share(const void* /*memory*/, std::size_t /*bytes*/) const { return 0; }
  // Where the memory that `peer` shares lies here, until the peer has left the call in which it
  // gave the reference; the engine decides what may be read or written when.
  virtual std::byte* reach(std::uint32_t /*peer*/, std::uint64_t /*reference*/) const {
    return nullptr;
  }

  // Copies by cross-memory attach (CMA) from and to a peer's own memory, by its address there;
  // hasDirect(peer). False: lastError() says why. Several threads may copy at once.
  virtual bool getFrom(std::uint32_t /*peer*/, std::uint64_t /*from*/, void* /*to*/,
                       std::size_t /*bytes*/) {
    return false;
  }
  virtual bool putTo(std::uint32_t /*peer*/, std::uint64_t /*to*/, const void* /*from*/,
                     std::size_t /*bytes*/) {
    return false;
  }
  // May be true of some peers where caps().direct is false; it is mutual.
  virtual bool hasDirect(std::uint32_t) const { return caps().direct; }

  // Gives memory to a part of a rank's window, its own or a peer's, where all of it lies here:
  // before it is touched there may be none. So a lack of it is an error, and no signal.
  virtual Status commit(std::uint32_t /*rank*/, std::size_t /*from*/, std::size_t /*bytes*/) {
    return {};
  }

  // A transport among some of these ranks, `members` by rank here, that shares what this one has of
  // them: processes, mappings, descriptors. Collective over setup.exchange; null where any of them
  // cannot, the same on all.
  virtual Status branch(const TransportSetup& /*setup*/, std::span<const std::uint32_t> /*members*/,
                        std::unique_ptr<Transport>* /*out*/) {
    return {};
  }

  // The caller makes progress itself, or stays away for an unknown time. In pairs.
  virtual void acquireProgress() {}
  virtual void releaseProgress() {}
  // caps().sleeps: as releaseProgress(), but the caller is about to sleep on its doorbell: somebody
  // makes progress at once, and whatever comes of it rings. False: not possible now, and the caller
  // still owns progress.
  virtual bool handOver() { return false; }
  // Since handOver() something has happened that poll() or an arrival slot tells. Any thread.
  virtual bool hasNews() const { return false; }

  virtual PutResult put(const Put&) = 0;
  // A put may go there soon: `bytes` to `target`, a byte offset in the peer's window or kInlined, and to the
  // slot at `arrival`. Both are free already. A hint, by which a core may have these lines before it stores.
  virtual void expectPut(std::uint32_t /*peer*/, std::uint64_t /*arrival*/,
                         std::uint64_t /*target*/, std::size_t /*bytes*/) {}
  // To a peer that has a mirror of this rank's page: all invocations up to there are complete. It
  // arrives some time, unless a later one overtakes it. Some of its bits travel: the peer takes the
  // number that is nearest to `completed` of its own page. False: not now; poll() and try again.
  virtual bool tell(std::uint32_t /*peer*/, std::uint64_t /*completed*/) { return true; }
  virtual int poll(Event* out, int max) = 0;
  virtual std::size_t outstanding() const = 0;
  // A put to that peer is Pending.
  virtual bool isPending(std::uint32_t /*peer*/) const { return false; }
  // Wakes the peer if it sleeps on its doorbell; put() does so by itself.
  virtual void wake(std::uint32_t /*peer*/) {}
  // Cuts this end of the link: later puts to the peer fail, nothing more of ours arrives there.
  virtual void sever(std::uint32_t peer) = 0;
  // The link to that peer is down: nothing is put there any more.
  virtual bool isDown(std::uint32_t) const { return false; }
  virtual const Status& lastError() const = 0;
};

// Owns the progress of a transport for its lifetime.
class ProgressOwnership {
 public:
  explicit ProgressOwnership(Transport& transport) : transport_(transport) {
    transport.acquireProgress();
  }
  ~ProgressOwnership() { transport_.releaseProgress(); }
  ProgressOwnership(const ProgressOwnership&) = delete;
  ProgressOwnership& operator=(const ProgressOwnership&) = delete;

 private:
  Transport& transport_;
};

// All-gather of a small blob over the control plane (bootstrap or a parent communicator). Without
// `all` nothing is exchanged and nobody waits: has a rank given up, as far as is known here?
using Exchange = std::function<Status(std::span<const std::byte> mine,
                                      std::vector<std::vector<std::byte>>* all)>;

// What each maker of a transport is given. All ranks call `exchange` equally often.
struct TransportSetup {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  WindowLayout layout;
  Exchange exchange;
  // The transport whose window this one leads to, too; null: it has one of its own.
  const Transport* inside = nullptr;
  bool allowDirect = true;  // knob WEFT_CMA
  int timeoutMs = 120000;
  std::vector<bool> peers;      // by rank: those to be reached by a wire; empty: all
  std::vector<PeerName> names;  // by rank, for errors
  // Where a maker that fails names the pairs of ranks that no living cable joins, each once, the lower
  // rank first: all of them, the same on all ranks. Null: nobody wants to know.
  std::vector<std::pair<std::uint32_t, std::uint32_t>>* uncabled = nullptr;
  // The NUMA node of this rank's cores, where its memory is to be, whoever touches it first; -1: of
  // none.
  int node = -1;
  // How far the device on a bus ("0000:00:06.0") is: 0 = near, -1 = unknown; empty: ask the kernel.
  std::function<int(const std::string& busId)> distanceOf;
};

}  // namespace weft::transport
