// SPDX-License-Identifier: Apache-2.0
// One rank of a library under test: sleeps until the driver sends a job, measures it, reports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "control.h"
#include "workload.h"

namespace weft::peers {

// The whole of what the harness knows about a library. Both may throw; that ends the process, which
// the driver reports.
class Library {
 public:
  virtual ~Library() = default;
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
  void measure(const Call& call, const Job& job);
  bool verify(const Call& call, std::uint32_t turn);
  double timeRepeat(const Call& call, std::uint32_t calls);
  std::uint32_t callsPerRepeat(const Call& call);
  void barrier();
  void finish();

  const Seat seat_;
  Library& library_;
  Group& group_;
  RankCell& cell_;
  std::uint32_t barriers_ = 0;
  bool last_ = false;  // rank 0: the repeat in progress is the last
};

// main() of a library whose ranks are processes: takes the seat, pins the process to its core,
// makes the library and serves. Returns the exit code.
int serveProcess(int argc, char** argv,
                 const std::function<std::unique_ptr<Library>(const Seat&)>& makeLibrary);

// The parts of serveProcess, for the floor, whose ranks are threads.
Seat takeSeat(int argc, char** argv, int rank);
void pinThread(const Seat& seat);

}  // namespace weft::peers
