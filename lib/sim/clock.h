// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/moments.h"
#include "sim/time.h"

namespace weft::sim {

struct Event {
  enum class Kind : std::uint8_t { Worked, Arrival, Wake, Polled };
  Kind kind = Kind::Worked;
  std::uint32_t what = 0;  // a worker, a message or a run
};

// What happens when; of equal times what was posted first.
class Clock {
 public:
  Time now() const { return now_; }
  void set(Time now) { now_ = now; }

  void post(Time at, Event::Kind kind, std::uint32_t what) {
    ++posted_;
    events_.add(at, {kind, what});
  }
  Time next() const { return events_.next(); }
  Event take() { return events_.take(); }
  std::uint64_t posted() const { return posted_; }

 private:
  Time now_ = 0;
  std::uint64_t posted_ = 0;
  Moments<Event> events_;
};

}  // namespace weft::sim
