// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/scheduler.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace weft::simulation {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::uint32_t kMostIdle = 13;

Scheduler* theOne = nullptr;

// Kept for the fibers of the next seed.
void* stackOf(std::uint32_t index) {
  static std::vector<void*> stacks;
  while (stacks.size() <= index) {
    void* const memory = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    stacks.push_back(memory);
  }
  return stacks[index];
}

}  // namespace

Scheduler::Scheduler(std::uint64_t seed) : random_(seed) { note(seed); }

Scheduler::~Scheduler() = default;

Scheduler* Scheduler::running() { return theOne; }

Scheduler::FiberId Scheduler::spawn(std::function<void()> body) {
  return spawn(std::move(body), process());
}

Scheduler::FiberId Scheduler::spawn(std::function<void()> body, std::uint32_t process) {
  auto fiber = std::make_unique<Fiber>();
  fiber->process = process;
  fiber->body = std::move(body);
  fiber->stack = static_cast<std::uint32_t>(fibers_.size());
  fiber->wakeAt = now_ + random_.between(0, kMicrosecond);
  fibers_.push_back(std::move(fiber));
  return static_cast<FiberId>(fibers_.size() - 1);
}

void Scheduler::at(Time when, std::function<void()> event) {
  events_.push_back({std::max(when, now_), order_++, std::move(event)});
  std::push_heap(events_.begin(), events_.end());
}

bool Scheduler::run(Time limit) {
  theOne = this;
  limit_ = limit;
  overrun_ = false;
  // NOLINTNEXTLINE: fibers come back here
  if (_setjmp(back_) == 0) switchTo(pick());
  theOne = nullptr;
  current_ = kNobody;
  return !overrun_;
}

// Whose turn it is; events that come before are run.
Scheduler::FiberId Scheduler::pick() {
  for (;;) {
    FiberId next = kNobody;
    Time when = kNever;
    for (FiberId f = 0; f < fibers_.size(); ++f) {
      const Fiber& fiber = *fibers_[f];
      const Time its = std::max(fiber.wakeAt, fiber.frozenUntil);
      if (!fiber.ended && its < when) next = f, when = its;
    }
    if (next == kNobody) return kNobody;
    if (!events_.empty() && events_.front().when <= when) {
      runEvent();
      continue;
    }
    now_ = std::max(now_, when);
    if (now_ <= limit_) return next;
    overrun_ = true;
    return kNobody;
  }
}

void Scheduler::runEvent() {
  std::pop_heap(events_.begin(), events_.end());
  Event event = std::move(events_.back());
  events_.pop_back();
  now_ = std::max(now_, event.when);
  event.what();
}

// The fiber that runs has set its wakeAt.
void Scheduler::pause() {
  Fiber& fiber = *fibers_[current_];
  if (fiber.steps != 0 && --fiber.steps == 0) std::exchange(fiber.action, {})();
  yield();
}

void Scheduler::yield() {
  Fiber& fiber = *fibers_[current_];
  const FiberId next = pick();
  if (next == current_) return;
  // NOLINTNEXTLINE: the fiber comes back here
  if (_setjmp(fiber.state) == 0) switchTo(next);
}

void Scheduler::switchTo(FiberId next) {
  if (next == kNobody) _longjmp(back_, 1);
  current_ = next;
  note(next ^ static_cast<std::uint64_t>(now_) << 8);
  Fiber& fiber = *fibers_[next];
  if (fiber.started) _longjmp(fiber.state, 1);
  start(fiber);
}

void Scheduler::start(Fiber& fiber) {
  fiber.started = true;
  ucontext_t context;
  ::getcontext(&context);
  context.uc_stack.ss_sp = stackOf(fiber.stack);
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  ::makecontext(&context, &Scheduler::main, 0);
  ::setcontext(&context);
}

void Scheduler::main() {
  Scheduler& scheduler = *theOne;
  Fiber& fiber = *scheduler.fibers_[scheduler.current_];
  fiber.body();
  fiber.ended = true;
  scheduler.switchTo(scheduler.pick());
}

void Scheduler::sleepUntil(Time when) {
  fibers_[current_]->wakeAt = std::max(when, now_) + random_.between(0, kMicrosecond);
  fibers_[current_]->idle = 0;  // nothing that it sees changes this
  pause();
}

void Scheduler::compute(Time span) {
  fibers_[current_]->wakeAt = now_ + span;
  fibers_[current_]->idle = 0;
  yield();
}

void Scheduler::spin() {
  Fiber& fiber = *fibers_[current_];
  fiber.idle = std::min(fiber.idle + 1, kMostIdle);
  fiber.wakeAt = now_ + random_.between(50, Time{500} << fiber.idle);
  pause();
}

bool Scheduler::waitFor(const void* what, Time until) {
  Fiber& fiber = *fibers_[current_];
  fiber.awaits = what;
  fiber.woken = false;
  fiber.wakeAt = until;
  pause();
  fiber.awaits = nullptr;
  return fiber.woken;
}

void Scheduler::wake(const void* what) {
  for (const auto& fiber : fibers_) {
    if (fiber->awaits != what) continue;
    fiber->awaits = nullptr;
    fiber->woken = true;
    fiber->wakeAt = now_ + random_.between(0, 5 * kMicrosecond);
  }
}

void Scheduler::hurry(FiberId id) {
  Fiber& fiber = *fibers_[id];
  if (fiber.idle == 0) return;
  fiber.idle = 0;
  fiber.wakeAt = std::min(fiber.wakeAt, now_ + random_.between(0, 2 * kMicrosecond));
}

void Scheduler::freeze(std::uint32_t process, Time until) {
  for (const auto& fiber : fibers_)
    if (fiber->process == process) fiber->frozenUntil = until;
}

void Scheduler::afterSteps(FiberId fiber, std::uint32_t steps, std::function<void()> action) {
  fibers_[fiber]->steps = steps;
  fibers_[fiber]->action = std::move(action);
}

}  // namespace weft::simulation
