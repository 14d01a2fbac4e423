// SPDX-License-Identifier: Apache-2.0
#include "engine/seated_team.h"

#include <sched.h>

#include <algorithm>

#include "base/now.h"
#include "engine/futex.h"
#include "engine/waiter.h"

namespace weft::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSpins = 1000;  // polls before the core is offered to a late helper
constexpr std::uint32_t kLookEvery = 64;
constexpr int kRuns = 5;
constexpr double kLatestNs = 1e6;  // a helper that has not come by then finds no core

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

// The best of several: load only makes it worse.
void SeatedTeam::measure() {
  costs_ = {kLatestNs, kLatestNs};
  for (int i = 0; i < kRuns; ++i) costs_.asleepNs = std::min(costs_.asleepNs, measureOnce());
  // As long as it takes to wake: so a helper never costs more than twice what the best choice does.
  patience_ = std::chrono::nanoseconds(static_cast<std::int64_t>(costs_.asleepNs));
  SeatedTeam::stayAwake();
  for (int i = 0; i < kRuns; ++i) costs_.awakeNs = std::min(costs_.awakeNs, measureOnce());
  SeatedTeam::rest();
}

// How long until all members have had a piece.
double SeatedTeam::measureOnce() {
  if (!awake_.load(std::memory_order_relaxed)) awaitAllAsleep();
  const double start = nowNs();
  publish(
      size(), [](void*, int) {}, nullptr, kWakes | kOwnOnly);
  const auto sinceStart = [start] { return nowNs() - start; };
  for (Patience patience(kSpins); !allDone(job_.load()) && sinceStart() < kLatestNs;)
    patience.pause();
  const double ns = sinceStart();
  close();
  return ns;
}

void SeatedTeam::awaitAllAsleep() const {
  const double start = nowNs();
  const auto isAwake = [](const Seat& seat) { return seat.asleep.load() == 0; };
  while (std::any_of(seats_.begin() + 1, seats_.end(), isAwake) && nowNs() - start < kLatestNs)
    sched_yield();
}

bool SeatedTeam::allDone(Job job) const {
  return std::ranges::all_of(seats_, [job](const Seat& seat) {
    return seat.done.load(std::memory_order_acquire) >= job >> kNumber;
  });
}

void SeatedTeam::run(std::uint32_t pieces, Body body, void* arg, bool wakes) {
  publish(pieces, body, arg, wakes ? kWakes : 0);
  close();
}

// Only once all pieces of the last job are done: nobody reads its body any more.
void SeatedTeam::publish(std::uint32_t pieces, Body body, void* arg, Job bits) {
  const Job number = (job_.load(std::memory_order_relaxed) >> kNumber) + 1;
  const Job job = number << kNumber | bits | pieces;
  body_ = body;
  arg_ = arg;
  job_.store(job, std::memory_order_seq_cst);
  if ((bits & kWakes) != 0) wakeBelow(0, job);
  if ((bits & kOwnOnly) != 0) work(0, job);
}

// Does what nobody has taken, and waits for what others have.
void SeatedTeam::close() {
  const Job job = job_.load(std::memory_order_relaxed) & ~kOwnOnly;
  work(0, job);
  const std::uint32_t spins = awake_.load(std::memory_order_relaxed) ? kSpins : 0;
  for (std::uint32_t piece = 0; piece < (job & kPieces); ++piece) {
    Patience patience(spins);
    while (seats_[piece].done.load(std::memory_order_acquire) < job >> kNumber) patience.pause();
  }
}

void SeatedTeam::help(std::uint32_t member, Job seen) {
  do {
    seen = awaitJob(member, seen);
    if ((seen & kWakes) != 0) wakeBelow(member, seen);
    work(member, seen);
  } while ((seen & kEnds) == 0);
}

SeatedTeam::Job SeatedTeam::awaitJob(std::uint32_t member, Job seen) {
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

void SeatedTeam::sleep(Seat& seat) {
  while (seat.asleep.load(std::memory_order_acquire) != 0) futexWait(seat.asleep, 1);
}

// Of those that have a piece; at the end, of all.
void SeatedTeam::wakeBelow(std::uint32_t member, Job job) {
  const std::uint64_t members = (job & kEnds) != 0 ? size() : job & kPieces;
  for (std::uint32_t below = 2 * member + 1; below <= 2 * member + 2 && below < members; ++below) {
    std::atomic<std::uint32_t>& asleep = seats_[below].asleep;
    if (asleep.load(std::memory_order_seq_cst) != 0 && asleep.exchange(0) != 0)
      futexWake(asleep, 1);
  }
}

// A helper may be late and see a job that is over: then all its pieces are taken. What it has taken
// keeps the job open.
void SeatedTeam::work(std::uint32_t member, Job job) {
  const auto pieces = static_cast<std::uint32_t>(job & kPieces);
  const std::uint32_t tries = (job & kOwnOnly) != 0 ? 1 : pieces;
  for (std::uint32_t i = 0; i < tries && member < pieces; ++i) {
    const std::uint32_t piece = (member + i) % pieces;
    if (!claim(seats_[piece], job >> kNumber)) continue;
    body_(arg_, static_cast<int>(piece));
    seats_[piece].done.store(job >> kNumber, std::memory_order_release);
  }
}

bool SeatedTeam::claim(Seat& seat, Job number) {
  std::uint64_t last = seat.taken.load(std::memory_order_relaxed);
  return last < number && seat.taken.compare_exchange_strong(last, number);
}

}  // namespace weft::engine
