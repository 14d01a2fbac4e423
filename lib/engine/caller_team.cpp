// SPDX-License-Identifier: Apache-2.0
#include "engine/caller_team.h"

#include <sched.h>
#include <unistd.h>

#include <climits>
#include <thread>

#include "engine/futex.h"
#include "engine/waiter.h"

namespace weft::engine {
namespace {

constexpr std::uint32_t kPolls = 1000;  // polls before the core is offered to those who are late
constexpr std::chrono::microseconds kYielding{500};

pid_t thisThread() {
  thread_local const pid_t id = ::gettid();
  return id;
}

}  // namespace

// That of the last call, if it is free: so the same thread leads, and has the same pieces.
std::uint32_t CallerTeam::takeSeat() {
  constinit thread_local std::uint32_t usual = 0;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint32_t seat = (usual + i) % size();
    Place& place = places_[seat];
    if (place.taken.load(std::memory_order_relaxed) || place.taken.exchange(true)) continue;
    place.thread.store(thisThread(), std::memory_order_relaxed);
    return usual = seat;
  }
  return size();
}

void CallerTeam::Caller::arrive(const Wish& wish) {
  team_.places_[seat_].wish = wish;
  seen_ = team_.lastJob();
  const std::uint32_t gathered = team_.gathered_.fetch_add(1) + 1;
  round_ = gathered / kRound;
  if (team_.isWhole(gathered, round_) && team_.sleepers_.load() != 0)
    futexWake(team_.gathered_, INT_MAX);
}

// The next round cannot become whole before everybody has left this one.
bool CallerTeam::isWhole(std::uint32_t gathered, std::uint32_t round) const {
  return gathered / kRound != round || (gathered & (kCome | kGivenUp)) == size();
}

bool CallerTeam::awaitAll(std::uint32_t round, Deadline until) {
  Deadline::Clock::time_point yielding{};
  for (std::uint32_t polls = 0;; ++polls) {
    const std::uint32_t gathered = gathered_.load(std::memory_order_acquire);
    if (isWhole(gathered, round)) return true;
    if ((gathered & kGivenUp) != 0) {  // why, the communicator's first error will say soon
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return false;
    }
    if (polls < kPolls) {
      Waiter::relax();
      continue;
    }
    const auto now = Deadline::Clock::now();
    if (now >= until.at()) return false;
    if (polls == kPolls) yielding = now + kYielding;
    if (now < yielding)
      sched_yield();
    else
      sleep(gathered, until);
  }
}

// Whoever comes last looks for sleepers after that.
void CallerTeam::sleep(std::uint32_t gathered, Deadline until) {
  sleepers_.fetch_add(1);
  futexWait(gathered_, gathered, until.remaining());
  sleepers_.fetch_sub(1);
}

bool CallerTeam::giveUp(std::uint32_t round) {
  std::uint32_t gathered = gathered_.load();
  while (!isWhole(gathered, round))
    if (gathered_.compare_exchange_weak(gathered, gathered | kGivenUp)) return true;
  return false;
}

void CallerTeam::begin(bool awake) {
  if (!measured_) measure();
  measured_ = true;
  if (awake)
    SeatedTeam::stayAwake();
  else
    SeatedTeam::rest();
  leader_.store(thisThread(), std::memory_order_relaxed);
}

bool CallerTeam::take() {
  return leader_.load(std::memory_order_relaxed) == thisThread() && SeatedTeam::take();
}

void CallerTeam::end(const Status& result) {
  leader_.store(0, std::memory_order_relaxed);
  result_ = result;
  gathered_.store((gathered_.load(std::memory_order_relaxed) / kRound + 1) * kRound,
                  std::memory_order_release);
  sendHome();
}

}  // namespace weft::engine
