// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "control/groups.h"
#include "control/loss.h"
#include "net/service_threads.h"
#include "net/stream.h"

namespace weft::control {

class ControlClient;

// One rank's end of a control link: the connection to the server or to a relay (control_relay.h), and
// the thread that serves it, for all communicators on the link (ControlClient). It lives until the
// last of them has left, in whatever order they do.
class LinkEnd {
 public:
  using Clock = std::chrono::steady_clock;
  // Connects to the server.
  using Reach = std::function<Status(std::unique_ptr<net::Stream>*)>;
  static constexpr std::int64_t kReachMs = 10'000;  // how long it may take

  // What all of them know of it. One mutex guards it and all that is theirs.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;                 // anything that somebody may wait for
    bool gone = false;                               // nobody is there to ask any more
    std::optional<Clock::time_point> orphanedSince;  // the server died; or the relay, from when on
                                                     // that counts if the server is not found
    bool orphanedByRelay = false;                    // whose connection was the last
    std::optional<Clock::time_point> relaySince;     // a sign of life of the relay is due
    std::chrono::milliseconds relayPatience{0};      // for so long
  };

  // `reach`: the stream is to a relay, and how to get past it; is called by the thread. `newGroups`:
  // the server's, in its process.
  explicit LinkEnd(std::unique_ptr<net::Stream> stream, Reach reach = {},
                   std::shared_ptr<NewGroups> newGroups = {});

  Shared& shared() { return shared_; }
  NewGroups* newGroups() { return newGroups_.get(); }
  // Any thread: one more of them, which asks what it has missed if it has. The first comes before the
  // thread.
  void add(std::shared_ptr<ControlClient> client);
  // It is of no use any more.
  bool isGone();
  // There is no thread for them.
  void dismiss();
  // Somebody has something to say.
  void wake();
  // The thread's life.
  void run(const net::StopSignal& stop);

 private:
  void serve(const net::StopSignal& stop);
  void fail(const Status& why);
  void wait(const net::StopSignal& stop);
  void takeWishes(bool processEnds);
  void sayGoodbye();
  void receive();
  void handle(const net::Message& message);
  void handOver(std::uint32_t group, const net::Message& message);
  void noteMissed(std::uint32_t group);
  void lose();
  void noteLossOfServer(const Loss& loss);
  void noteOrphaned(bool byRelay);
  Status passRelay();
  bool passLostRelay();
  void passStuckRelay();
  bool isRecovering();

  const std::shared_ptr<NewGroups> newGroups_;
  net::Socket bell_;  // an eventfd: somebody wishes something

  // The thread's own.
  std::unique_ptr<net::Stream> stream_;
  Reach reach_;                       // past the relay; empty once this is the server's stream
  std::optional<Deadline> relayDue_;  // when to pass a relay that has shown no life until then
  std::optional<Deadline> goodbye_;   // Bye is said: until when the server may take to close

  Shared shared_;
  std::vector<std::shared_ptr<ControlClient>> clients_;  // that have not left
  // The latest that something was said of which are not here: not yet, or no more.
  std::deque<std::uint32_t> missed_;
  bool missedMore_ = false;
};

}  // namespace weft::control
