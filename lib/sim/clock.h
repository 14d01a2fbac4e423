// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <vector>

#include "sim/time.h"

namespace weft::sim {

struct Event {
  enum class Kind : std::uint8_t { Worked, Arrival, Wake, Polled };
  Kind kind = Kind::Worked;
  std::uint32_t what = 0;  // a worker, a message or a run
};

// What happens when; of equal times what was posted first. Ranks that do the same do it at the same time, so
// that events of one time share a *moment*, and the heap has one entry for thousands of them.
class Clock {
 public:
  Time now() const { return now_; }
  void set(Time now) { now_ = now; }

  void post(Time at, Event::Kind kind, std::uint32_t what) {
    ++posted_;
    momentAt(at).events.push_back({kind, what});
  }
  Time next() const { return heap_.empty() ? kNever : heap_.top().at; }
  Event take() {
    const std::uint32_t number = heap_.top().moment;
    Moment& moment = moments_[number];
    const Event event = moment.events[moment.taken++];
    if (moment.taken == moment.events.size()) end(number);
    return event;
  }
  std::uint64_t posted() const { return posted_; }

 private:
  struct Moment {
    Time at = kNever;  // kNever: it is free
    std::size_t taken = 0;
    std::vector<Event> events;
  };
  struct Entry {
    Time at = 0;
    std::uint64_t number =
        0;  // of two moments of one time the first was over when the second began
    std::uint32_t moment = 0;
    bool operator>(const Entry& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  static constexpr std::size_t kRecent = 256;

  // Only the last moment with that place among recent ones is added to.
  Moment& momentAt(Time at) {
    std::uint32_t& recent = recent_[static_cast<std::uint64_t>(at) * 0x9e3779b97f4a7c15 >> 56];
    if (recent < moments_.size() && moments_[recent].at == at) return moments_[recent];
    recent = begin(at);
    return moments_[recent];
  }
  std::uint32_t begin(Time at) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(moments_.size()));
      moments_.emplace_back();
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    moments_[number].at = at;
    heap_.push({at, begun_++, number});
    return number;
  }
  void end(std::uint32_t number) {
    moments_[number].at = kNever;
    moments_[number].taken = 0;
    moments_[number].events.clear();
    free_.push_back(number);
    heap_.pop();
  }

  Time now_ = 0;
  std::uint64_t posted_ = 0, begun_ = 0;
  std::vector<Moment> moments_;
  std::vector<std::uint32_t> free_;
  std::array<std::uint32_t, kRecent> recent_{};
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

}  // namespace weft::sim
