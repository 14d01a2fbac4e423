// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace weft::engine {

// The threads of one rank: whoever runs its calls, and helpers, which share the bytes of large ops.
// All else of a call stays with the one that runs it.
//
// One call at a time has the team, between take() and release(); another communicator of the rank
// that runs at the same time does without. The rest is for the call that has it.
class Team {
 public:
  using Body = void (*)(void* arg, int piece);
  // What run() costs beyond the bodies, as measured when the team was made.
  struct Costs {
    double awakeNs = 0;   // while helpers wait for the next piece
    double asleepNs = 0;  // while they sleep
  };

  explicit Team(std::uint32_t size) : size_(size) {}
  virtual ~Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::uint32_t size() const { return size_; }
  const Costs& costs() const { return costs_; }

  virtual bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void release() { taken_.store(false, std::memory_order_release); }

  // From now on helpers may stay awake for a while after a piece, until rest().
  virtual void stayAwake() {}
  virtual void rest() {}
  virtual bool isAwake() const { return true; }
  // Runs body(arg, 0) ... body(arg, pieces - 1), pieces <= size(), each once, on whichever threads
  // come first, and returns when all are done. `wakes`: it is worth waking those that sleep.
  virtual void run(std::uint32_t pieces, Body body, void* arg, bool wakes) = 0;

 protected:
  Costs costs_;

 private:
  const std::uint32_t size_;
  std::atomic<bool> taken_{false};
};

// A pool of the application's: a function that does what Team::run() does, and its context.
struct Pool {
  void (*parallelFor)(void* context, int pieces, Team::Body body, void* arg) = nullptr;
  void* context = nullptr;
  friend bool operator==(const Pool&, const Pool&) = default;
};

class PoolTeam final : public Team {
 public:
  PoolTeam(std::uint32_t size, const Pool& pool);

  void run(std::uint32_t pieces, Body body, void* arg, bool wakes) override;

 private:
  const Pool pool_;
};

// What a communicator knows of its rank's team.
struct Crew {
  std::shared_ptr<Team> team;  // null: one thread
  std::uint32_t cores = 1;     // this rank's part of the cores that the ranks of the host share
  double nsPerByte = 0;        // of a copy by one thread
};

}  // namespace weft::engine
