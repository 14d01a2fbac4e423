// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/transport.h"
#include "watch/proc_stat.h"

namespace weft::watch {

// Do the processes of this host's peers still run? Asks the kernel, not the peers: a pidfd tells
// the end even where a forked child keeps sockets open, and /proc/PID/stat tells it while the
// memory of a killed trainer is still being freed, which takes up to 100 ms a GiB and for so long
// delays the pidfd. Peers without descriptors (threads, other hosts) count as alive. Not
// thread-safe.
class Liveness {
 public:
  using Clock = std::chrono::steady_clock;
  using Warn = std::function<void(const std::string&)>;

  // names[i] is the transport's peer i, oneself included. `warn` is called once each time a
  // peer has been stopped (SIGSTOP, debugger) for kStopPatience; without it the log gets the line.
  Liveness(transport::Transport& transport, const std::vector<PeerName>& names, Warn warn = {});

  // One poll(2), and one pread(2) of about 3 us a peer, of kAtOnce peers by turns and of those that
  // had ended when they were last looked at: call it every few milliseconds of waiting, never in a
  // hot loop. Many peers are watched by many. Once it has failed it keeps its answer: RemoteError,
  // "rank 5 (host b, pid 4711) was killed by SIGKILL at most 5 ms ago; fix: ...". A peer that has
  // ended but does not matter (index as in `names`; all do by default) is passed over.
  using Matters = std::function<bool(std::uint32_t peer)>;
  Status check(const Matters& matters = {});

  // Runs nothing now: dead, dying or stopped, as far as the kernel tells.
  bool isStill(std::uint32_t peer) const;

  // Each peer that was stopped when it was last looked at, and a line that says so.
  struct Stopped {
    PeerName who;
    std::string line;
  };
  std::vector<Stopped> stopped() const;

  static constexpr std::chrono::milliseconds kStopPatience{500};
  static constexpr std::size_t kAtOnce = 64;

 private:
  struct Peer {
    std::uint32_t index = 0;
    PeerName name;
    int deathFd = -1;
    int statFd = -1;
    bool ended = false;
    bool stopped = false;
    bool warned = false;
    Clock::time_point stoppedAt;
    Clock::time_point aliveAt = Clock::now();  // when it was last seen to be
  };

  void chooseWhom();
  Status look(Peer&, bool dead, Clock::time_point now);
  void noteStop(Peer&, const ProcStat&, Clock::time_point now);
  std::string stopOf(const Peer&) const;
  Status ended(const Peer&, const ProcStat*, Clock::time_point now) const;

  Warn warn_;
  std::vector<Peer> peers_;
  std::size_t next_ = 0;             // whose turn it is
  std::vector<std::size_t> chosen_;  // of peers_, in one check
  std::vector<pollfd> deaths_;       // theirs
  Status firstError_;
};

}  // namespace weft::watch
