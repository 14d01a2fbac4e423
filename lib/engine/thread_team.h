// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/cache_aligned.h"
#include "base/status.h"
#include "engine/team.h"

namespace weft::engine {

// A team with helpers of its own. They have the affinity mask of the thread that makes it, take no
// signals, and sleep on a futex while no call has the team.
//
// run() publishes a job. A member takes the piece of its own number first, so that the same bytes
// stay in the same core's caches, and then what is left of the others'. Nobody waits for a helper
// that has not come: whoever runs the job takes its piece. So a helper that finds no core costs
// nothing but its wake-up. Those who sleep are woken as a tree.
class ThreadTeam final : public Team {
 public:
  // Starts size - 1 helpers, and measures what it takes until all have come.
  static Status make(std::uint32_t size, std::shared_ptr<Team>* out);
  explicit ThreadTeam(std::uint32_t size) : Team(size), seats_(size) {}
  ~ThreadTeam() override;

  void stayAwake() override { awake_.store(true, std::memory_order_release); }
  void rest() override { awake_.store(false, std::memory_order_relaxed); }
  bool isAwake() const override { return seats_[1].asleep.load(std::memory_order_relaxed) == 0; }
  void run(std::uint32_t pieces, Body body, void* arg, bool wakes) override;

 private:
  // A job's word: its number, from 1, how many pieces, and the bits. Numbers only grow.
  using Job = std::uint64_t;
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

  void start();
  void measure();
  double measureOnce();
  void awaitAllAsleep() const;
  bool allDone(Job job) const;
  void publish(std::uint32_t pieces, Body body, void* arg, Job bits);
  void close();
  void help(std::uint32_t member);
  Job awaitJob(std::uint32_t member, Job seen);
  void work(std::uint32_t member, Job job);
  static bool take(Seat& seat, Job job);
  void wakeBelow(std::uint32_t member, Job job);
  static void sleep(Seat& seat);

  std::vector<Seat> seats_;
  std::vector<std::thread> helpers_;
  // What all read, on one line.
  alignas(base::kCacheAligned) std::atomic<Job> job_{0};
  std::atomic<bool> awake_{false};
  Body body_ = nullptr;
  void* arg_ = nullptr;
  std::chrono::nanoseconds patience_{};  // how long a helper stays awake for the next piece
};

}  // namespace weft::engine
