// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/clock.h"
#include "sim/job.h"
#include "sim/sharing.h"
#include "sim/symmetry.h"

namespace weft::sim {

// What does the work of ranks. A worker is one stream of a rank, which does one thing at a time: on a
// core of its own, or with others on one that is a resource, as the memory is that it uses meanwhile.
// Ranks of one stream that have fewer cores than they are take turns, as those do that yield while
// they wait: whoever has the core keeps it until it must wait, and polls for a while if it waits for
// another core alone.
class Cores {
 public:
  // The rates of the network's resources, and of cores where they are resources.
  static std::vector<double> ratesOf(const Setting& setting, std::uint32_t streams);

  // All outlive it. Rank r has the workers from r * streams on. `handOverNs`: from one to another.
  Cores(const Setting& setting, const Symmetry& symmetry, Clock& clock, Sharing& sharing,
        std::uint32_t ranks, std::uint32_t streams, double handOverNs);

  std::uint32_t rankOf(std::uint32_t worker) const { return worker / streams_; }
  std::uint32_t workerOf(std::uint32_t rank, std::uint32_t stream) const {
    return rank * streams_ + stream;
  }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(began_.size()); }
  double slownessOf(std::uint32_t rank) const { return slowness_[rank]; }
  Time began(std::uint32_t worker) const { return began_[worker]; }

  // The core works for so long, for its worker alone, and moves so much of its node's memory. An
  // event tells the end, or the worker's cookie.
  void work(std::uint32_t worker, double ns, double memoryBytes);
  // Computes on what is no core, unless the setting says that it is.
  void compute(std::uint32_t worker, double ns);
  // A worker that has waited goes on: the system hands the core over to it.
  void resume(std::uint32_t worker);
  enum class Waits : std::uint8_t { ForThisCore, ForOthers };
  // The worker waits, or has come to its end.
  void pause(std::uint32_t worker, Waits waits = Waits::ForThisCore);
  // It has polled in vain, if it still does.
  void polled(std::uint32_t worker);
  bool takeTurns() const { return !turns_.empty(); }
  bool shareACore(std::uint32_t rank, std::uint32_t other) const;  // where they take turns

  static constexpr std::uint64_t kCookie = std::uint64_t{1} << 32;  // with a worker in the low half

 private:
  static std::uint32_t coresOf(const Setting& setting, std::uint32_t streams);  // of a node; 0: any
  std::uint32_t coreOf(std::uint32_t worker) const;                             // as a resource
  void start(std::uint32_t worker, double ns, double memoryBytes);

  static constexpr std::uint32_t kNobody = ~0u;
  struct Request {
    std::uint32_t worker = 0;
    double ns = 0, memoryBytes = 0;
  };
  // Of a core whose ranks take turns.
  struct Turns {
    bool begun = false;
    std::uint32_t holder = kNobody;
    Time pollsUntil = kNever;  // of a holder that polls
    std::vector<Request> waiting;
  };
  void ask(const Request& request);
  void give(Turns* turns, const Request& request, double turnsBefore);
  void leave(Turns* turns);
  double pollNs(std::uint32_t rank) const;
  std::uint32_t turnsBetween(std::uint32_t one, std::uint32_t other) const;
  std::uint32_t placeOf(std::uint32_t rank) const;  // among those of its core
  std::uint32_t ranksOfCoreOf(std::uint32_t rank) const;

  const Setting& setting_;
  const Network& network_;
  const Symmetry& symmetry_;
  Clock& clock_;
  Sharing& sharing_;
  const std::uint32_t streams_;
  const double handOverNs_;
  std::vector<double> slowness_;         // by rank
  std::vector<Time> began_;              // by worker
  std::vector<std::uint32_t> channels_;  // by worker; empty: cores are no resource
  std::vector<Turns> turns_;             // by core of all nodes; empty: nobody takes turns
};

}  // namespace weft::sim
