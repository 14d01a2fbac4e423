// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/executor.h"
#include "engine/pairs.h"
#include "engine/turns.h"
#include "plan/cache.h"
#include "transports/transport.h"
#include "tune/this_machine.h"
#include "watch/watch.h"

namespace weft {

// What the creator of a communicator asks for: weftConfig_t with the knobs filled in.
struct CommConfig {
  int timeoutMs = 600000;
  int initTimeoutMs = 120000;
  std::string name;
  std::string transport = "auto";
  bool reproducible = false;
};

// One call, ready to run, perhaps later and on another thread: owns all but the buffers.
struct Operation {
  Call call;
  std::vector<std::size_t> counts, displs;  // what call.counts and call.displs refer to
  std::string algorithm;                    // what call.algorithm refers to
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::array<std::byte, 8> scalar{};  // PreMulSum
  std::vector<PairOp> pairs;          // point-to-point batch: then `call` is not used
  bool isPairs = false;
  int timeoutMs = 0;
  std::string label;
};

// One rank's end of a communicator. See weft.h for what callers may do; run() and runPairs() are
// called in turn (turns()), the rest from any thread.
class Communicator {
 public:
  struct Parts {
    std::uint32_t rank = 0;
    std::uint32_t ranks = 1;
    std::uint32_t localRank = 0;
    CommConfig config;
    std::unique_ptr<Transport> transport;
    std::shared_ptr<FarRanks> farRanks;  // null: all ranks share memory
    std::vector<PeerName> names;
    std::uint32_t coresHere = 1;  // that this host's ranks have together
    WaitTuning waiting;
    std::uint32_t lanes = kParities;
    Tuning tuning;
    Origin calibrated = Origin::Nowhere;  // where rank 0 has tuning.ground.machine from
    BindTarget target;
  };
  explicit Communicator(Parts parts);
  ~Communicator() { watch_.leaveForGood(); }

  std::uint32_t rank() const { return parts_.rank; }
  std::uint32_t ranks() const { return parts_.ranks; }
  std::uint32_t localRank() const { return parts_.localRank; }
  const CommConfig& config() const { return parts_.config; }
  const std::string& name() const { return parts_.config.name; }

  Turns& turns() { return turns_; }
  // The hot path: finds the plan and runs it on this thread. Only in turn.
  Status run(const Call& call, const void* in, void* out, const void* scalar, int timeoutMs,
             const char* label);
  Status run(const Operation& operation);
  // The plan's choice in one line.
  Status explain(const Call& call, std::string* line);
  // Why: the forms that were considered, what the model thinks of each, and what decides.
  Status explainChoice(const Call& call, std::string* lines);
  // What carries bytes to whom, a line each way.
  std::string explainEdges() const;
  // The machine that the model counts with.
  std::string explainMachine() const;

  Status verdict() const { return watch_.verdict(); }
  Status abort() { return watch_.abort(); }
  Status lookAround();
  // Waits for all calls issued so far.
  Status finish();
  // Ends what is in flight, bounded, so that the object may be destroyed.
  void shutDown();

  // Pre-multiplied sums. The operation's number counts from 0.
  int addScalar(DType type, const void* scalar);
  Status scalarOf(int op, DType type, std::array<std::byte, 8>* scalar) const;
  Status dropScalar(int op);

  std::size_t sharedBytes() const { return parts_.transport->layout().size(); }
  std::size_t planBytes() const { return planBytes_.load(std::memory_order_relaxed); }
  std::size_t otherBytes() const;

 private:
  struct Scalar {
    DType type;
    std::array<std::byte, 8> value;
    bool live;
  };
  Status settle(const Status& status);

  Parts parts_;
  Watch watch_;
  Executor executor_;
  Pairs pairs_;
  PlanCache plans_;
  Turns turns_;
  std::atomic<std::size_t> planBytes_{0};
  mutable std::mutex scalarsMutex_;
  std::vector<Scalar> scalars_;
};

}  // namespace weft
