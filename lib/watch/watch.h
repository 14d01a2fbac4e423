// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "plan/plan.h"
#include "transports/transport.h"
#include "watch/first_error.h"
#include "watch/liveness.h"
#include "watch/remote_ranks.h"
#include "watch/silence.h"

namespace weft::watch {

// Why a collective does not come to its end, and who is to blame. One for a communicator.
//
// Every call is announced on this rank's control page before anything of it is sent. Whoever waits
// long compares its call with those of the peers, looks whether they live, and whether anybody has
// declared an error. The first error of a communicator wins and is what every rank reports.
//
// Of a rooted call a rank may be through before others have made it. So what is compared, and
// travels with all data, is the tag: a fingerprint of all calls so far. A rank that has put and
// heard nothing since compares now and then, and when it finishes.
//
// Used by the thread that runs the communicator's calls, but for what may be called by any thread.
class Watch {
 public:
  // `far` is for communicators some of whose ranks share no memory; null: all do.
  Watch(transport::Transport& transport, std::uint32_t rank, const std::vector<PeerName>& names,
        std::string commName, RemoteRanks* remote = nullptr);

  // Hot path: two lines written, no system call. `label` may be null and must outlive the call. What
  // it finds out is the first error.
  [[gnu::always_inline]] void enter(const plan::Plan& plan, int timeoutMs, const char* label) {
    enter({plan.fingerprint, plan.what, plan.count, plan.runsAhead}, timeoutMs, label);
  }
  // A collective, whatever it is run by.
  struct Announced {
    std::uint64_t fingerprint, what, count;  // as in a plan
    bool runsAhead;
  };
  [[gnu::always_inline]] void enter(const Announced& call, int timeoutMs, const char* label);
  // Point-to-point work has no place in the order of collectives: a deadline and nothing to
  // compare.
  void enterPairs(int timeoutMs, const char* label);
  void leave() {
    std::atomic<std::uint32_t>& inside = inPairs_ ? mine_.inPairs : mine_.inCall;
    inside.store(0, std::memory_order_release);
  }
  // The end of a call: what it returns. An error of usage had no effect; any other is the end of the
  // communicator, for all ranks. Whoever dies before it has told that must not look like one that has
  // done its part: it leaves after that, and then awaits the others.
  Status settle(const Status& status) {
    if (!status.ok()) return settleError(status);
    leave();
    return {};
  }
  // After a call that failed: the ranks that share memory with this one may still be reading and
  // writing its buffers. Waits until they have left the call as well, for half a second at most,
  // and not for those that are dead or stopped.
  void awaitOthers() const;

  // Between calls: until all ranks have made the last one, if this rank may be ahead of them.
  Status finish(int timeoutMs);

  // Nothing has moved for a millisecond. An error becomes the communicator's first error. `needs`
  // says of point-to-point work whether a transfer with that peer is unfinished: only then does its
  // end matter.
  using Needs = Liveness::Matters;
  Status trouble(std::uint32_t waitingFor, const Needs& needs = {});
  // The transport cannot reach a peer. That is mostly the first sign of a death, whose story says
  // more than the symptom: waits a moment for it.
  Status lost(const Status& symptom);
  // The arrival from `peer` is of another call than this rank's.
  Status disagreement(std::uint32_t peer);
  // Makes `cause` the first error, unless there is one already; returns the one that holds. Any
  // cause takes the place of a lost link, so that nobody tries to recover from that.
  Status declare(const Status& cause);
  // The first error so far; OK if there is none. Any thread.
  Status firstError() const;
  // From when on firstError() tells why.
  bool isBroken() const { return unshared_.load(std::memory_order_acquire) || published(); }
  // Looks now for peers that are dead, outside of any call. Any thread: if another is looking, it
  // leaves that to it.
  Status lookAround();
  // Any thread.
  Status abort();

  // The number of the last call that was entered here; of collectives. And the fingerprint of all
  // of them since the communicator was made, or recovered.
  std::uint64_t calls() const { return seq_; }
  std::uint64_t tag() const { return tag_; }
  // This communicator goes on from another, whose calls count.
  void goOnFrom(std::uint64_t calls) { seq_ = calls; }
  // A call that fails before it is entered.
  void passOver() { ++seq_; }

  const PeerName& nameOf(std::uint32_t rank) const { return names_[rank]; }
  // "all_reduce(count=1, float, sum) #3 on communicator c"
  std::string currentCall() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kCompareEvery = transport::kRing / 4;  // calls, if rooted

  Status settleError(const Status& status);
  bool published() const { return isPublished(*firstError_); }
  // Ranks by what they called; "" of those that have not yet.
  using Callers = std::map<std::string, std::vector<std::uint32_t>>;
  PeerName oddOneOut(const Callers& callers) const;
  std::map<std::uint64_t, std::string> wordsHeard(std::uint64_t seq) const;
  Callers heardOf(std::uint64_t seq) const;
  Callers callersOf(std::uint64_t* seq);
  void keep(const Status& cause);
  void beginWait(int timeoutMs, const char* label) {
    timeoutMs_ = timeoutMs;
    label_ = label;
    waiting_ = false;
  }
  Status compareCalls(std::uint64_t seq);
  Status compareOne(std::uint64_t seq);
  bool differ(std::uint64_t seq) const;
  std::uint64_t firstDifference() const;
  void awaitAgreement();
  Status lookForDead(bool inCall, const Needs& needs = {});
  Status farDeath(const Needs& matters) const;
  bool isInside(std::uint32_t peer) const;
  bool isMissed(std::uint32_t peer, bool inCall, const Needs& needs) const;
  bool endSeenBefore(std::uint32_t peer);
  bool isAwaited(std::uint32_t leaver, const Needs& needs);
  Status lookForLeavers(const Needs& needs);
  void askRemoteRanks(Clock::time_point now);
  Status late(std::uint32_t waitingFor);
  ErrorData whoIsLate(std::uint32_t waitingFor) const;
  std::string lastSeen(std::uint32_t rank) const;
  void warnIfLong(std::uint32_t waitingFor);

  transport::Transport& transport_;
  const std::uint32_t rank_;
  const std::vector<PeerName> names_;
  const std::string commName_;
  transport::ControlPage& mine_;
  RemoteRanks* const remote_;
  transport::FirstError* firstError_;
  Liveness liveness_;
  // An error that could not be published: a rank died while it wrote the first one.
  std::atomic<bool> unshared_{false};
  Status unsharedError_;  // written under sharing_ before unshared_ is set, never after
  std::mutex sharing_;
  // Held while somebody checks whether peers have ended: guards liveness_, endSeen_, looks_.
  mutable std::mutex looking_;

  std::uint64_t seq_ = 0;
  std::uint64_t tag_ = 0;
  bool ahead_ = false;   // the last call may not have been made by all
  bool inPairs_ = true;  // point to point, or no call yet
  const char* label_ = nullptr;
  int timeoutMs_ = 0;
  bool waiting_ = false;  // since_ is valid
  // By peer: the look that saw its end first, 0 = none. What it had sent before lies here since, so
  // whatever a later look finds missing never comes.
  std::vector<std::uint64_t> endSeen_;
  std::uint64_t looks_ = 0;
  Clock::time_point since_{};
  Clock::time_point nextLook_{};
  Clock::time_point nextAsk_{};  // remote ranks for what they do
  std::chrono::milliseconds askEvery_{0};
  Silence silence_;
  std::chrono::seconds warnAfter_{10};
};

inline void Watch::enter(const Announced& call, int timeoutMs, const char* label) {
  inPairs_ = false;
  ahead_ = call.runsAhead;
  tag_ = Hash().add(tag_ + call.fingerprint).value();
  ++seq_;
  transport::CallRecord& record = mine_.calls[seq_ % transport::kCallRecords];
  // Release each: whoever reads a field of this call no longer finds the number of an older one.
  record.seq.store(0, std::memory_order_relaxed);
  record.fingerprint.store(tag_, std::memory_order_release);
  record.count.store(call.count, std::memory_order_release);
  record.what.store(call.what, std::memory_order_release);
  record.seq.store(seq_, std::memory_order_release);
  // In this order: whoever is killed in between must not look like one that has done its part.
  mine_.inCall.store(1, std::memory_order_relaxed);
  mine_.callSeq.store(seq_, std::memory_order_release);
  beginWait(timeoutMs, label);
  if (ahead_ && seq_ % kCompareEvery == 0) (void)compareCalls(seq_ - kCompareEvery);
}

// This rank makes no further call, or its communicator could not be made: its end is no failure.
// Wakes whoever still waits for it.
void leaveForGood(transport::Transport& transport, RemoteRanks* remote);

}  // namespace weft::watch
