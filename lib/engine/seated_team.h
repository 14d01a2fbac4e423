// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/cache_aligned.h"
#include "engine/team.h"

namespace weft::engine {

// A team whose members wait for pieces on threads of their own: member 0 runs the call, the others
// are in help(), asleep on a futex unless told to stay awake.
//
// run() publishes a job. A member takes the piece of its own number first, so that the same bytes
// stay in the same core's caches, and then what is left of the others'. Nobody waits for a member
// that has not come: whoever runs the job takes its piece. So a member that finds no core costs
// nothing but its wake-up. Those who sleep are woken as a tree.
class SeatedTeam : public Team {
 public:
  explicit SeatedTeam(std::uint32_t size) : Team(size), seats_(size) {}

  void stayAwake() override { awake_.store(true, std::memory_order_release); }
  void rest() override { awake_.store(false, std::memory_order_relaxed); }
  bool isAwake() const override { return seats_[1].asleep.load(std::memory_order_relaxed) == 0; }
  void run(std::uint32_t pieces, Body body, void* arg, bool wakes) override;

 protected:
  // A job's word: its number, from 1, how many pieces, and the bits. Numbers only grow.
  using Job = std::uint64_t;

  // Member 0: measures what it takes until all have come, and how long they stay awake.
  void measure();
  // Member 0: the others go home.
  void sendHome() { publish(0, nullptr, nullptr, kWakes | kEnds); }
  // Any other member: does what there is until the end. `seen`: the last job, before this member
  // told that it is here.
  void help(std::uint32_t member, Job seen);
  Job lastJob() const { return job_.load(std::memory_order_acquire); }

 private:
  static constexpr Job kWakes = 1u << 15;    // members wake those below them in the tree
  static constexpr Job kOwnOnly = 1u << 14;  // nobody takes another's piece: to measure helpers
  static constexpr Job kEnds = 1u << 13;     // the last one: helpers go home
  static constexpr Job kPieces = kEnds - 1;
  static constexpr int kNumber = 16;

  // A member, and the piece of its number.
  struct alignas(base::kCacheAligned) Seat {
    std::atomic<std::uint64_t> taken{0};  // the last job of which somebody has taken the piece
    std::atomic<std::uint64_t> done{0};   // ... has done it
    std::atomic<std::uint32_t> asleep{0};
  };

  double measureOnce();
  void awaitAllAsleep() const;
  bool allDone(Job job) const;
  void publish(std::uint32_t pieces, Body body, void* arg, Job bits);
  void close();
  Job awaitJob(std::uint32_t member, Job seen);
  void work(std::uint32_t member, Job job);
  static bool claim(Seat& seat, Job job);
  void wakeBelow(std::uint32_t member, Job job);
  static void sleep(Seat& seat);

  std::vector<Seat> seats_;
  // What all read, on one line.
  alignas(base::kCacheAligned) std::atomic<Job> job_{0};
  std::atomic<bool> awake_{false};
  Body body_ = nullptr;
  void* arg_ = nullptr;
  std::chrono::nanoseconds patience_{};  // how long a helper stays awake for the next piece
};

}  // namespace weft::engine
