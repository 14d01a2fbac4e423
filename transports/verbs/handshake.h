// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "transports/verbs/datagram.h"

namespace weft::verbs {

// How the ends of edges are connected, when one of them first needs it: by words that may be lost,
// doubled or late. Pure: fed with words and the time.
//
// Each end makes a queue pair, offers it, and joins it to the one that it is offered; either may
// begin, or both. An end is ready once it is told that the other one has joined: until then its
// writes would find nobody. Whoever wants to write repeats its offer until then; the other end
// only answers. An offer is answered unless it is settled: its sender is ready.
class Handshakes {
 public:
  using Time = Deadline::Clock::time_point;

  // This rank's ends, by edge.
  class Ends {
   public:
    virtual ~Ends() = default;
    // A queue pair that may be joined.
    virtual Status make(std::uint32_t edge, Endpoint* mine) = 0;
    virtual Status join(std::uint32_t edge, const Endpoint& theirs) = 0;
    // May be lost.
    virtual void say(std::uint32_t edge, const Word& word) = 0;
    // Once: writes may go.
    virtual void ready(std::uint32_t edge) = 0;
    // Nothing comes of it. Calls end() of that edge, and maybe of others.
    virtual void fail(std::uint32_t edge, const std::string& why) = 0;
  };

  Handshakes(Ends& ends, int patienceMs) : ends_(ends), patience_(patienceMs) {}

  // There is something to write.
  void want(std::uint32_t edge, Time now);
  void take(std::uint32_t edge, const Word& word);
  // Repeats and gives up what it is time for.
  void tick(Time now);
  // Something came over the connection: the other end is ready.
  void heard(std::uint32_t edge) { settle(edge, all_[edge]); }
  // For good: offers are refused.
  void end(std::uint32_t edge) { all_[edge].ended = true; }

  // An end waits for the other one: tick() has something to do.
  bool isPending() const { return !waiting_.empty(); }
  bool isJoined(std::uint32_t edge) const {
    const auto found = all_.find(edge);
    return found != all_.end() && found->second.theirs.known();
  }

 private:
  struct End {
    Endpoint mine, theirs;
    bool ready = false;
    bool wanted = false;
    bool ended = false;
    Time since, next;
    std::chrono::milliseconds pause{};
  };

  void open(std::uint32_t edge, End& end);
  void join(std::uint32_t edge, End& end, const Endpoint& theirs);
  void settle(std::uint32_t edge, End& end);
  void offer(std::uint32_t edge, const End& end);
  void repeat(std::uint32_t edge, End& end, Time now);

  Ends& ends_;
  const std::chrono::milliseconds patience_;
  std::unordered_map<std::uint32_t, End> all_;  // those that were ever needed
  std::vector<std::uint32_t> waiting_;          // wanted, but not ready
};

}  // namespace weft::verbs
