// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/cache_aligned.h"
#include "base/deadline.h"
#include "base/status.h"
#include "engine/seated_team.h"

namespace weft::engine {

// A team of the application's own threads, which make every call together, all of them, as in an
// OpenMP region. Each takes a seat in the call; when all seats are taken, the thread in seat 0 runs
// it and the others help until it ends. Between calls nobody is here, so nobody has the team.
class CallerTeam final : public SeatedTeam {
 public:
  // What a thread wants done. It lives until the thread has left the call.
  struct Wish {
    std::uint64_t fingerprint = 0;
    const void* call = nullptr;
  };
  // A thread's seat in a call; leaves it at the end.
  class Caller {
   public:
    explicit Caller(CallerTeam& team) : team_(team), seat_(team.takeSeat()) {}
    ~Caller() {
      if (isSeated()) team_.places_[seat_].taken.store(false, std::memory_order_release);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    // False: more threads have come than the team has members.
    bool isSeated() const { return seat_ < team_.size(); }
    bool leads() const { return seat_ == 0; }
    void arrive(const Wish& wish);
    // Until all have come; false if that takes longer.
    bool awaitAll(Deadline until) const { return team_.awaitAll(round_, until); }
    // This thread waits no longer, so the call will not be, for anybody, nor any later one. False:
    // all have come meanwhile.
    bool giveUp() const { return team_.giveUp(round_); }
    // Helps until the call ends; its result.
    Status follow() {
      team_.help(seat_, seen_);
      return team_.result_;
    }

   private:
    CallerTeam& team_;
    const std::uint32_t seat_;
    std::uint32_t round_ = 0;
    Job seen_ = 0;
  };

  explicit CallerTeam(std::uint32_t size) : SeatedTeam(size), places_(size) {}

  // The thread in seat 0 begins the call, in which helpers may stay awake, and ends it.
  void begin(bool awake);
  void end(const Status& result);

  // To tell what went wrong: in each seat what is wanted of this call, and who sits there, or did.
  const Wish& wishOf(std::uint32_t seat) const { return places_[seat].wish; }
  pid_t threadOf(std::uint32_t seat) const { return places_[seat].thread.load(); }
  bool isTaken(std::uint32_t seat) const { return places_[seat].taken.load(); }

  // Only the thread in seat 0 has help.
  bool take() override;
  // How long helpers stay awake is this class's decision: they leave when the call ends.
  void stayAwake() override {}
  void rest() override {}

 private:
  struct alignas(base::kCacheAligned) Place {
    std::atomic<bool> taken{false};
    std::atomic<pid_t> thread{0};
    Wish wish;
  };
  // Of the threads that have come: how many, whether one gave up, and the number of the call.
  static constexpr std::uint32_t kCome = (1u << 16) - 1;
  static constexpr std::uint32_t kGivenUp = 1u << 16;
  static constexpr std::uint32_t kRound = 1u << 17;

  std::uint32_t takeSeat();
  bool isWhole(std::uint32_t gathered, std::uint32_t round) const;
  bool awaitAll(std::uint32_t round, Deadline until);
  void sleep(std::uint32_t gathered, Deadline until);
  bool giveUp(std::uint32_t round);

  std::vector<Place> places_;
  alignas(base::kCacheAligned) std::atomic<std::uint32_t> gathered_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<pid_t> leader_{0};  // of the call that runs
  bool measured_ = false;
  Status result_;
};

}  // namespace weft::engine
