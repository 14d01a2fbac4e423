// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/clock.h"
#include "sim/cores.h"
#include "sim/inbox.h"
#include "sim/job.h"
#include "sim/lanes.h"
#include "sim/program.h"
#include "sim/sharing.h"
#include "sim/symmetry.h"
#include "sim/ways.h"

namespace weft::sim {

// The engine's part of the simulation: runs the programs of calls, as many at once as there are. A
// call is made once by each rank, which is a *run*: run = call * ranks + rank. Ranks are those that
// are simulated, the first of each class.
class Calls {
 public:
  // One call: which of the jobs it is.
  struct Kind {
    const Job* job = nullptr;
    std::vector<Program> programs;  // by class of ranks that are alike
  };

  // All outlive it. `likeness`: which ranks run the same program, those of a class that `symmetry` folds among
  // them. `calls`: of each call its kind.
  Calls(const Setting& setting, const Symmetry& symmetry, const Symmetry& likeness,
        const std::vector<Kind>& kinds, std::vector<std::uint32_t> calls, Clock& clock,
        Sharing& sharing, Cores& cores);

  std::uint32_t runOf(std::uint32_t call, std::uint32_t rank) const { return call * ranks_ + rank; }
  std::uint32_t rankOf(std::uint32_t run) const { return run % ranks_; }

  std::uint32_t workerOf(std::uint32_t run) const { return runs_[run].worker; }

  // A rank enters a call: its worker is at its service until it has finished.
  void begin(std::uint32_t run, std::uint32_t worker);
  // What has happened.
  void worked(std::uint32_t run);    // its core has done what it was at
  void left(std::uint32_t message);  // its bytes have passed the links
  void arrive(std::uint32_t message);
  void wake(std::uint32_t run);
  // What follows from it at once. False: nothing.
  bool goOn();
  // The runs that have finished since the last time.
  std::vector<std::uint32_t> takeFinished() { return std::exchange(finished_, {}); }

  std::uint64_t messages() const { return messageCount_; }
  // Of a run that has begun and not finished: where it stands.
  Status whereItStands(std::uint32_t run) const;

 private:
  // What the engine of a rank is at in a call.
  struct Run {
    const Program* program = nullptr;  // null: nobody has begun the call, or all have finished it
    std::uint32_t worker = 0;
    bool moved = false, busy = false, idle = true, woken = false;
    bool turnsTo = false;   // the core is about to run this
    bool receives = false;  // the core sees to the first of `came`
    enum class State : std::uint8_t { Away, In, Through } state = State::Away;
    std::uint64_t opened = 0, closed = 0, looksAt = 0;  // segments
    Lanes lanes;
    Inbox came;
    std::uint64_t completed = 0;
    std::vector<Time> completedAt;  // by segment, where credits are asked for
    std::vector<std::pair<std::uint32_t, Time>> wantCredit;  // who, and how long it is told
  };
  static constexpr std::uint32_t kNoChannel = ~0u;
  struct Message {
    std::uint32_t from = 0, to = 0;  // runs
    std::uint32_t target = 0;
    std::uint32_t channel = kNoChannel;
    std::uint64_t segment = 0;
    Time latency = 0, sent = 0;
    std::uint64_t bytes = 0;
    std::uint32_t op = 0;
    bool byMemory = false;
  };

  const Job& jobOf(std::uint32_t run) const { return *kinds_[calls_[run / ranks_]].job; }
  std::uint32_t callOf(std::uint32_t run) const { return run / ranks_; }
  // The rank that the program of this one calls `peer`, and its run in the same call.
  std::uint32_t rankOfPeer(std::uint32_t run, std::uint32_t peer) const {
    return likeness_.seenBy(rankOf(run), peer);
  }
  std::uint32_t peerOf(std::uint32_t run, std::uint32_t peer) const {
    return runOf(callOf(run), symmetry_.classOf(rankOfPeer(run, peer)));
  }
  void open(std::uint32_t call);
  void finish(std::uint32_t run);

  void advance(std::uint32_t number);
  bool mayOpen(const Run& run) const;
  bool turnTo(std::uint32_t number);
  Cores::Waits waits(std::uint32_t number) const;
  bool hasWork(std::uint32_t number);
  bool advanceLane(std::uint32_t number, Lane& lane);
  double bytesOf(const Run& run, const Lane& lane, const Step& step) const;
  bool receive(std::uint32_t number);
  void received(std::uint32_t number);
  bool mayRun(std::uint32_t number, const Lane& lane, const Step& step);
  bool mayPut(std::uint32_t number, const Lane& lane, std::uint32_t peer, Time told);
  double workOf(std::uint32_t number, const Lane& lane, const Step& step) const;
  void close(Run& run, Lane& lane);
  void send(std::uint32_t number, Lane& lane, const Step& step);
  std::uint32_t keep(const Message& message);
  Time latencyOf(std::uint32_t number, std::uint32_t peer, const Step& step);
  double receiptNs(std::uint32_t number, bool byMemory) const;
  Time memoryLatencyOf(std::uint32_t number) const;
  double noise(std::uint32_t number, const Lane& lane, std::uint32_t what) const;
  void observeWork(std::uint32_t number, const Lane& lane, const Step& step) const;
  void observeReceipt(std::uint32_t number, const Came& message) const;
  void observeMessage(const Message& message) const;

  const Setting& setting_;
  const Symmetry& symmetry_;
  const Symmetry& likeness_;
  const std::vector<Kind>& kinds_;
  const std::vector<std::uint32_t> calls_;
  Clock& clock_;
  Sharing& sharing_;
  Cores& cores_;
  Ways ways_;
  const std::uint32_t ranks_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> through_;  // by call: ranks
  std::vector<Message> messages_;
  std::vector<std::uint32_t> freeMessages_, woken_, finished_;
  std::uint64_t messageCount_ = 0;
};

}  // namespace weft::sim
