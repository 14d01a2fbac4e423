// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/moments.h"
#include "sim/network.h"
#include "sim/time.h"

namespace weft::sim {

// What is shared, shared fairly: each resource has a rate, and what is on its way has the max-min
// fair part of all resources that it uses, found by progressive filling among those that a change
// can reach.
//
// Whatever uses the same resources is a *channel*: its parts are equal, so they end in the order in
// which each has got its amount, and a channel costs the same however many there are.
class Sharing {
 public:
  explicit Sharing(std::vector<double> rates);

  std::uint32_t addChannel(std::span<const Use> uses);
  // Of a channel in which nothing is on its way.
  void setUses(std::uint32_t channel, std::span<const Use> uses);

  // So much sets out now. Rates hold from settle() on, which follows all that happens at a time.
  void start(std::uint32_t channel, double amount, std::uint64_t cookie, Time now) {
    startInQueue(channel, kNoQueue | cookie, amount, cookie, now);
  }
  // Or once all is through that was before it in that queue, which is of this channel alone.
  void startInQueue(std::uint32_t channel, std::uint64_t queue, double amount, std::uint64_t cookie,
                    Time now);
  void settle(Time now);
  bool isIdle(std::uint32_t channel) const { return channels_[channel].count == 0; }

  Time nextEnd();
  // The cookies of all that is through by now.
  std::vector<std::uint64_t> finish(Time now);

  double carried(std::uint32_t resource) const { return resources_[resource].carried; }

 private:
  static constexpr std::uint64_t kNoQueue = std::uint64_t{1} << 63;  // one by itself
  static constexpr std::uint32_t kNobody = ~0u;
  static constexpr std::uint32_t kFew = 16;  // queues of a channel, among which one is looked for

  struct Resource {
    double rate = 0;
    double carried = 0;                   // in all
    std::vector<std::uint32_t> channels;  // that have something on its way here
    double left = 0, weight = 0;          // while rates are found
    std::uint64_t metIn = 0;              // the last filling that came here
    bool isChanged = false;
  };
  // Whatever is on its way here has the same rate, and has got as much since nothing was.
  struct Channel {
    std::uint32_t firstUse = 0, uses = 0;  // of uses_ and places_
    std::uint32_t room = 0;                // there
    std::uint32_t count = 0;               // on its way
    std::uint32_t holder = 0;              // the full resource for which it is no faster
    double rate = 0;
    double served = 0;     // what each has got, up to `since`
    double firstDone = 0;  // as much has been served when the first of them ends
    Time since = 0;
    std::uint32_t version = 0;  // of that end
    bool isNoted = false;       // in ends_
    bool isIndexed = false;     // its queues are in lineOf_
  };
  struct Ending {
    double served = 0;  // as much as each in the channel has got then
    std::uint64_t cookie = 0, queue = 0;
    std::uint32_t line = kNobody;  // what waits behind it in its queue
    bool operator>(const Ending& other) const {
      return served != other.served ? served > other.served : cookie > other.cookie;
    }
  };
  struct Line {
    std::uint32_t next = kNobody, last = kNobody;  // of waiting_
  };
  struct Waiting {
    double amount = 0;
    std::uint64_t cookie = 0;
    std::uint32_t next = kNobody;
  };
  struct Level {  // of rates, at which a resource is full
    double at = 0;
    std::uint32_t resource = 0;
    bool operator>(const Level& other) const {
      return at != other.at ? at > other.at : resource > other.resource;
    }
  };
  struct NextEnd {
    std::uint32_t channel = 0, version = 0;
  };

  std::span<Use> usesOf(const Channel& channel) {
    return {uses_.data() + channel.firstUse, channel.uses};
  }
  std::uint32_t* placesOf(const Channel& channel) { return places_.data() + channel.firstUse; }
  bool isOutOfDate(const NextEnd& end) const {
    return end.version != channels_[end.channel].version;
  }
  void begin(std::uint32_t channel, const Ending& one);
  void finish(std::uint32_t channel, Time now, std::vector<std::uint64_t>* ended);
  std::uint64_t end(std::uint32_t channel);
  std::uint32_t findLine(std::uint32_t channel, std::uint64_t queue) const;
  std::uint32_t openLine(std::uint32_t channel, std::uint64_t queue);
  void closeLine(std::uint32_t channel, const Ending& last);
  void wait(Line* line, double amount, std::uint64_t cookie);
  Ending nextInLine(const Ending& before);
  void enter(std::uint32_t channel);
  void leave(std::uint32_t channel);
  void mark(const Channel& channel);
  double servedBy(const Channel& channel, Time now) const;
  void meet(std::uint32_t resource);
  void findReach(std::uint32_t resource);
  void fill(Time now);
  void stop(std::uint32_t holder, double rate, Time now);
  void fix(Channel& channel, double rate, std::uint32_t holder, Time now);
  static Time endOf(const Channel& channel);
  void consider(std::uint32_t channel);
  void noteFirstEnds();

  std::vector<Resource> resources_;
  std::vector<Channel> channels_;
  // By channel. Fillings are apart, as a channel is asked for these once more for each resource.
  std::vector<std::vector<Ending>> endings_;  // a heap: of each queue that is on its way the first
  std::vector<std::uint64_t> metIn_, fixedIn_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> places_;  // of a channel in the lists of its resources
  std::vector<Line> lines_;            // of queues with something on its way
  std::vector<Waiting> waiting_;
  std::uint32_t freeLine_ = kNobody, freeWaiting_ = kNobody;  // of these, by `next`
  std::unordered_map<std::uint64_t, std::uint32_t> lineOf_;   // by queue, of channels with many
  std::vector<std::uint32_t> changed_;                        // resources
  std::vector<std::uint32_t> met_;     // resources that one of these can reach
  std::vector<Level> levels_;          // of these
  std::vector<std::uint32_t> later_;   // resources that hold one whose first end is a later one
  std::vector<std::uint32_t> firsts_;  // channels that may end first of those that are considered
  double least_ = 0;                   // what is left until then
  Moments<NextEnd> ends_;
  std::uint64_t fillings_ = 0;
};

}  // namespace weft::sim
