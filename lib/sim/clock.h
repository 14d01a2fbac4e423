// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/time.h"

namespace weft::sim {

struct Event {
  enum class Kind : std::uint8_t { Worked, Arrival, Wake, Polled };
  Time at = 0;
  std::uint64_t number = 0;  // of equal times the first comes first
  Kind kind = Kind::Worked;
  std::uint32_t what = 0;  // a worker, a message or a run
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : number > other.number;
  }
};

// What happens when.
class Clock {
 public:
  Time now() const { return now_; }
  void set(Time now) { now_ = now; }

  void post(Time at, Event::Kind kind, std::uint32_t what) {
    events_.push({at, number_++, kind, what});
  }
  Time next() const { return events_.empty() ? kNever : events_.top().at; }
  Event take() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }
  std::uint64_t posted() const { return number_; }

 private:
  Time now_ = 0;
  std::uint64_t number_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace weft::sim
