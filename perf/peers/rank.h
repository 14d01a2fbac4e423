// SPDX-License-Identifier: Apache-2.0
// One rank of a library under test: sleeps until the driver sends a job, measures it, reports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control.h"
#include "workload.h"

namespace weft::peers {

// A buffer that goes the way it came.
using Memory = std::shared_ptr<void>;

// The whole of what the harness knows about a library. All may throw; that ends the process, which
// the driver reports.
class Library {
 public:
  virtual ~Library() = default;
  // A job of this mode begins: what follows, up to the next enter(), is of it.
  virtual void enter(Mode) {}
  // Memory for the buffers of a call; without an override, what malloc gives, at 2 MiB.
  virtual Memory allocate(std::size_t bytes);
  // Before the first run of a call with these buffers, on every rank; never timed.
  virtual void prepare(const Call&) {}
  // One collective call; returns when this rank may use its buffers.
  virtual void run(const Call& call) = 0;
};

// How a rank finds the harness: `peer_x <page> <group>`, rank from the launcher's environment.
struct Seat {
  Page* page = nullptr;
  int group = 0;
  int rank = 0;
  int ranks = 1;
};

// Serves jobs for one rank until Mode::Quit or until the driver is gone.
class RankLoop {
 public:
  RankLoop(const Seat& seat, Library& library);
  void serve();

 private:
  void perform(const Job& job);
  struct Limits {
    std::uint32_t repeats, least;  // as few as this once the deadline is over
    std::int64_t deadlineNs;
  };
  void measure(const Call& call, const Job& job);
  std::vector<double> sample(const Call& call, std::uint32_t calls, bool fresh,
                             const Limits& limits);
  bool verify(const Call& call);
  double timeRepeat(const Call& call, std::uint32_t calls);
  std::int64_t beginTogether();
  std::uint32_t callsPerRepeat(const Call& call);
  void barrier();
  void finish();

  const Seat seat_;
  Library& library_;
  Group& group_;
  RankState& state_;
  std::uint32_t barriers_ = 0;
  std::uint32_t turn_ = 0;  // of the input
  bool last_ = false;       // rank 0: the repeat in progress is the last
};

// The seat that the command line names. Throws std::runtime_error.
Seat takeSeat(int argc, char** argv, int rank);

// main() of a library: makes it on the core of its rank, and serves. Returns the exit code.
using MakeLibrary = std::function<std::unique_ptr<Library>(const Seat&)>;
int serveProcess(int argc, char** argv, const MakeLibrary& makeLibrary);  // one rank
int serveThreads(int argc, char** argv,
                 const MakeLibrary& makeLibrary);  // all ranks, a thread each

}  // namespace weft::peers
