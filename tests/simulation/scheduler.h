// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "tests/simulation/random.h"

namespace weft::simulation {

using Time = std::int64_t;  // nanoseconds of the simulated clock
inline constexpr Time kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

// Runs fibers on one thread, one at a time. A fiber runs until it waits; then the clock jumps to
// whatever comes next, a fiber or an event, so that all that happens follows from the seed.
// system_calls.cpp makes the system calls with which the library waits wait here.
class Scheduler {
 public:
  using FiberId = std::uint32_t;

  explicit Scheduler(std::uint64_t seed);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  // The one that runs a fiber or an event now; null outside of run().
  static Scheduler* running();

  // The new fiber is of the process of the one that runs, or of `process`.
  FiberId spawn(std::function<void()> body);
  FiberId spawn(std::function<void()> body, std::uint32_t process);
  // Until every fiber has ended or is frozen for good. False: some still went on at `limit`.
  bool run(Time limit);
  void at(Time when, std::function<void()> event);
  Time now() const { return now_; }
  Random& random() { return random_; }
  // Changes once anything that happens does.
  std::uint64_t trace() const { return trace_; }
  void note(std::uint64_t what) { trace_ = Random::mixed(trace_ ^ what); }

  // ---- of the fiber that runs ----
  FiberId self() const { return current_; }
  std::uint32_t process() const { return fibers_[current_]->process; }
  void sleepUntil(Time when);
  // It computes for so long, and nothing is done to it meanwhile.
  void compute(Time span);
  // It found nothing to do: the longer that is so, the longer until it looks again.
  void spin();
  // Until somebody wakes those that wait for `what`; false: `until` came first.
  bool waitFor(const void* what, Time until);

  // ---- of any ----
  void wake(const void* what);
  // Something came for it.
  void hurry(FiberId fiber);
  // All fibers of that process stand still.
  void freeze(std::uint32_t process, Time until = kNever);
  // Calls it when the fiber waits for the `steps`-th time from now.
  void afterSteps(FiberId fiber, std::uint32_t steps, std::function<void()> action);

 private:
  struct Fiber {
    std::function<void()> body;
    std::uint32_t process = 0;
    std::uint32_t stack = 0;
    jmp_buf state;
    bool started = false;
    bool ended = false;
    Time wakeAt = 0;
    Time frozenUntil = 0;
    std::uint32_t idle = 0;
    const void* awaits = nullptr;
    bool woken = false;
    std::uint32_t steps = 0;
    std::function<void()> action;
  };
  struct Event {
    Time when = 0;
    std::uint64_t order = 0;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  static constexpr FiberId kNobody = ~0u;

  FiberId pick();
  void runEvent();
  void pause();
  void yield();
  void switchTo(FiberId fiber);
  void start(Fiber& fiber);
  static void main();

  Random random_;
  std::uint64_t trace_ = 0;
  Time now_ = 1'000'000 * kMillisecond;
  Time limit_ = kNever;
  bool overrun_ = false;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Event> events_;  // a heap
  std::uint64_t order_ = 0;
  FiberId current_ = kNobody;
  jmp_buf back_;
};

}  // namespace weft::simulation
