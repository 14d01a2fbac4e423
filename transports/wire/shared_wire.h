// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transports/wire/progress_thread.h"
#include "transports/wire/wire.h"
#include "transports/wire/wire_end.h"

namespace weft::wire {

// A wire and the communicators on it, which share its endpoints, connections and thread. Whoever polls
// does so for all of them, and each event goes to the end of the one that it is for.
//
// Any thread; one lock for all. It is destroyed with the last communicator.
class SharedWire {
 public:
  explicit SharedWire(std::unique_ptr<Wire> wire);
  ~SharedWire();

  // Does that communicator make progress? At first it does.
  struct Presence {
    bool owns = true;     // it polls
    bool sleeps = false;  // it has handed over
  };
  // Without the lock. As of a Transport, from when it arrives until it departs:
  void arrive();
  void acquireProgress(Presence* who);
  void releaseProgress(Presence* who);
  bool handOver(Presence* who);
  void depart(Presence* who);

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  // Somebody else may be about to make progress.
  std::unique_lock<std::mutex> tryLock() { return std::unique_lock(mutex_, std::try_to_lock); }

  // What follows needs the lock.
  Wire& wire() { return *wire_; }
  // A number, and a first value, for one more end. False: there is none.
  bool reserve(const ImmediateValues& values, std::uint32_t* number, std::uint32_t* firstValue);
  void release(std::uint32_t number);
  void add(std::shared_ptr<WireEnd> end);
  // What has come. Others than `asker` are rung. How much it was.
  int progress(const WireEnd* asker);
  // For an end of which the wire may have refused something.
  void retryLater(WireEnd* end);
  // Cuts the link to that peer of the wire, for all; `by` knows.
  void sever(std::uint32_t peer, const WireEnd* by);

  // The communicator of that end is gone; the end stays until nobody needs it. True: it was the last.
  bool leave(WireEnd* end);
  // As WireEnd has it, for all that have been left.
  bool sayGoodbye(bool anyway);
  bool isQuiet() const;

 private:
  struct Place {
    bool taken = false;
    bool settled = false;  // it has ended, and nobody needs it
    std::shared_ptr<WireEnd> end;
  };

  WireEnd* endOf(std::uint32_t number) const {
    return number < places_.size() ? places_[number].end.get() : nullptr;
  }
  void dispatch(const WireEvent& event, const WireEnd* asker);
  static void linkDown(WireEnd& end, std::uint32_t peer, const Status& why);
  void hear(const WireEvent& event, const WireEnd* asker);
  void retry();
  void closeEnded();
  bool takeRuns(std::uint32_t runs, std::uint32_t number, std::uint32_t* first);
  void yieldProgress();
  ProgressThread::Milliseconds arm(std::vector<pollfd>* descriptors, bool waits);

  std::mutex mutex_;  // of what follows
  std::unique_ptr<Wire> wire_;
  std::vector<Place> places_;  // by number
  // Whose values are which: by run of 2^kFewestBits of them. Empty: all are of the first.
  std::vector<std::uint32_t> runs_;
  std::uint32_t nextRun_ = 0;  // none is used again soon, as late values may come
  std::vector<WireEnd*> refused_;
  std::uint32_t communicators_ = 0;
  std::uint32_t ended_ = 0;  // ends without one, not settled yet
  std::uint32_t idlePolls_ = 0;

  std::mutex presence_;  // of what follows
  std::uint32_t owners_ = 0, sleepers_ = 0;
  const bool manual_;
  // Of a wire that is manual, between calls, or that sleeps; last, as it uses the others.
  std::unique_ptr<ProgressThread> progressThread_;
};

}  // namespace weft::wire
