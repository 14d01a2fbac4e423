// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_team.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/threads.h"
#include "engine/waiter.h"
#include "tune/stopwatch.h"

namespace weft::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSpins = 1000;  // polls before the core is offered to a late helper
constexpr std::uint32_t kLookEvery = 64;
constexpr int kRuns = 5;
constexpr double kLatestNs = 1e6;  // a helper that has not come by then finds no core

void futex(std::atomic<std::uint32_t>& word, int op, std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  (void)syscall(SYS_futex, &word, op | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

// Polls first, then offers the core.
class Patience {
 public:
  explicit Patience(std::uint32_t spins) : spins_(spins) {}
  void pause() {
    if (polls_++ < spins_)
      Waiter::relax();
    else
      sched_yield();
  }

 private:
  const std::uint32_t spins_;
  std::uint32_t polls_ = 0;
};

}  // namespace

Status ThreadTeam::make(std::uint32_t size, std::shared_ptr<Team>* out) {
  return withoutExceptions([&]() -> Status {
    auto team = std::make_shared<ThreadTeam>(size);
    team->start();
    team->measure();
    *out = std::move(team);
    return {};
  });
}

void ThreadTeam::start() {
  const SignalsBlocked blocked;
  helpers_.reserve(size() - 1);
  for (std::uint32_t member = 1; member < size(); ++member)
    helpers_.emplace_back([this, member] { help(member); });
}

ThreadTeam::~ThreadTeam() {
  publish(0, nullptr, nullptr, kWakes | kEnds);
  for (std::thread& helper : helpers_) helper.join();
}

// The best of several: load only makes it worse.
void ThreadTeam::measure() {
  costs_ = {kLatestNs, kLatestNs};
  for (int i = 0; i < kRuns; ++i) costs_.asleepNs = std::min(costs_.asleepNs, measureOnce());
  // As long as it takes to wake: so a helper never costs more than twice what the best choice does.
  patience_ = std::chrono::nanoseconds(static_cast<std::int64_t>(costs_.asleepNs));
  stayAwake();
  for (int i = 0; i < kRuns; ++i) costs_.awakeNs = std::min(costs_.awakeNs, measureOnce());
  rest();
}

// How long until all members have had a piece.
double ThreadTeam::measureOnce() {
  if (!awake_.load(std::memory_order_relaxed)) awaitAllAsleep();
  const double start = tune::nowNs();
  publish(
      size(), [](void*, int) {}, nullptr, kWakes | kOwnOnly);
  const auto sinceStart = [start] { return tune::nowNs() - start; };
  for (Patience patience(kSpins); !allDone(job_.load()) && sinceStart() < kLatestNs;)
    patience.pause();
  const double ns = sinceStart();
  close();
  return ns;
}

void ThreadTeam::awaitAllAsleep() const {
  const double start = tune::nowNs();
  const auto isAwake = [](const Seat& seat) { return seat.asleep.load() == 0; };
  while (std::any_of(seats_.begin() + 1, seats_.end(), isAwake) &&
         tune::nowNs() - start < kLatestNs)
    sched_yield();
}

bool ThreadTeam::allDone(Job job) const {
  return std::ranges::all_of(seats_, [job](const Seat& seat) {
    return seat.done.load(std::memory_order_acquire) >= job >> kNumber;
  });
}

void ThreadTeam::run(std::uint32_t pieces, Body body, void* arg, bool wakes) {
  publish(pieces, body, arg, wakes ? kWakes : 0);
  close();
}

// Only once all pieces of the last job are done: nobody reads its body any more.
void ThreadTeam::publish(std::uint32_t pieces, Body body, void* arg, Job bits) {
  const Job number = (job_.load(std::memory_order_relaxed) >> kNumber) + 1;
  const Job job = number << kNumber | bits | pieces;
  body_ = body;
  arg_ = arg;
  job_.store(job, std::memory_order_seq_cst);
  if ((bits & kWakes) != 0) wakeBelow(0, job);
  if ((bits & kOwnOnly) != 0) work(0, job);
}

// Does what nobody has taken, and waits for what others have.
void ThreadTeam::close() {
  const Job job = job_.load(std::memory_order_relaxed) & ~kOwnOnly;
  work(0, job);
  const std::uint32_t spins = awake_.load(std::memory_order_relaxed) ? kSpins : 0;
  for (std::uint32_t piece = 0; piece < (job & kPieces); ++piece) {
    Patience patience(spins);
    while (seats_[piece].done.load(std::memory_order_acquire) < job >> kNumber) patience.pause();
  }
}

void ThreadTeam::help(std::uint32_t member) {
  for (Job seen = 0; (seen & kEnds) == 0;) {
    seen = awaitJob(member, seen);
    if ((seen & kWakes) != 0) wakeBelow(member, seen);
    work(member, seen);
  }
}

ThreadTeam::Job ThreadTeam::awaitJob(std::uint32_t member, Job seen) {
  Seat& seat = seats_[member];
  Clock::time_point since{};
  for (std::uint32_t polls = 0;; ++polls) {
    if (const Job job = job_.load(std::memory_order_acquire); job != seen) return job;
    bool stays = awake_.load(std::memory_order_acquire);
    if (stays && polls % kLookEvery == 0) {
      const Clock::time_point now = Clock::now();
      if (polls == 0) since = now;
      stays = now - since <= patience_;
    }
    if (stays) {
      Waiter::relax();
      continue;
    }
    // Dekker's algorithm: whoever publishes looks for sleepers after that.
    seat.asleep.store(1, std::memory_order_seq_cst);
    if (job_.load(std::memory_order_seq_cst) == seen) sleep(seat);
    seat.asleep.store(0, std::memory_order_relaxed);
  }
}

void ThreadTeam::sleep(Seat& seat) {
  while (seat.asleep.load(std::memory_order_acquire) != 0) futex(seat.asleep, FUTEX_WAIT, 1);
}

// Of those that have a piece; at the end, of all.
void ThreadTeam::wakeBelow(std::uint32_t member, Job job) {
  const std::uint64_t members = (job & kEnds) != 0 ? size() : job & kPieces;
  for (std::uint32_t below = 2 * member + 1; below <= 2 * member + 2 && below < members; ++below) {
    std::atomic<std::uint32_t>& asleep = seats_[below].asleep;
    if (asleep.load(std::memory_order_seq_cst) != 0 && asleep.exchange(0) != 0)
      futex(asleep, FUTEX_WAKE, 1);
  }
}

// A helper may be late and see a job that is over: then all its pieces are taken. What it has taken
// keeps the job open.
void ThreadTeam::work(std::uint32_t member, Job job) {
  const auto pieces = static_cast<std::uint32_t>(job & kPieces);
  const std::uint32_t tries = (job & kOwnOnly) != 0 ? 1 : pieces;
  for (std::uint32_t i = 0; i < tries && member < pieces; ++i) {
    const std::uint32_t piece = (member + i) % pieces;
    if (!take(seats_[piece], job >> kNumber)) continue;
    body_(arg_, static_cast<int>(piece));
    seats_[piece].done.store(job >> kNumber, std::memory_order_release);
  }
}

bool ThreadTeam::take(Seat& seat, Job number) {
  std::uint64_t last = seat.taken.load(std::memory_order_relaxed);
  return last < number && seat.taken.compare_exchange_strong(last, number);
}

}  // namespace weft::engine
