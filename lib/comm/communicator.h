// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/cache_aligned.h"
#include "base/status.h"
#include "base/threads.h"
#include "comm/core.h"
#include "engine/turns.h"

namespace weft::comm {

// One call, ready to run, perhaps later and on another thread: owns all but the buffers.
struct Operation {
  plan::Call call;
  std::vector<std::size_t> counts, displs;  // what call.counts and call.displs refer to
  std::string algorithm;                    // what call.algorithm refers to
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::array<std::byte, 8> scalar{};  // PreMulSum
  std::vector<engine::PairOp> pairs;  // point-to-point batch: then `call` is not used; or those of
                                      // a call that exchanges
  bool isPairs = false;
  int timeoutMs = 0;
  std::string label;
};

// One rank's end of a communicator. See weft.h for what callers may do; run() and runPairs() are
// called in turn (turns()), the rest from any thread.
class alignas(base::kCacheAligned) Communicator {
 public:
  explicit Communicator(std::unique_ptr<Core> core);

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t localRank() const { return localRank_; }
  std::uint32_t localRanks() const { return localRanks_; }
  const CommConfig& config() const { return config_; }
  const std::string& name() const { return config_.name; }
  const PeerName& me() const { return me_; }

  engine::Turns& turns() { return turns_; }
  // The threads that make each call together; null: one thread makes it.
  engine::CallerTeam* callers() const { return callers_; }
  bool callersHaveCores() const { return callersHaveCores_; }  // one each
  // The hot path: finds the plan and runs it on this thread. Only in turn.
  Status run(const plan::Call& call, const void* in, void* out, const void* scalar, int timeoutMs,
             const char* label);
  // The last call, if it was one of a plan whose ranks run ahead, chosen for good, so that the next one like
  // it need only be run. Only in turn.
  struct Repeat {
    const plan::Plan* plan = nullptr;  // null: it was not
    schedule::Collective collective = schedule::Collective::Broadcast;
    reduce::DType type = reduce::DType::U8;
    reduce::RedOp op = reduce::RedOp::Sum;
    int root = 0;
    std::uint64_t count = 0;
  };
  const Repeat& repeat() const { return repeat_; }
  bool mayRepeat() const { return repeat_.plan != nullptr && !core_->watch.isBroken(); }
  [[gnu::always_inline]] Status runRepeat(const void* in, void* out);
  // The same for RedOp::Epilogue; `in` and `out` as plan/epilogue.h says.
  Status run(const plan::Call& call, const void* in, void* out, plan::Epilogue& epilogue,
             int timeoutMs, const char* label);
  Status run(const Operation& operation);
  Status runPairs(std::span<const engine::PairOp> pairs, int timeoutMs, const char* label);
  // An all-gather of the library's own: `count` elements of each rank. Only in turn.
  Status allGather(const void* mine, void* all, std::size_t count, reduce::DType type,
                   int timeoutMs, const char* label);
  // The plan's choice in one line.
  Status explain(const plan::Call& call, std::string* line);
  // Why: the forms that were considered, what the model thinks of each, and what decides.
  Status explainChoice(const plan::Call& call, std::string* lines);
  // What carries bytes to whom, a line each way.
  std::string explainEdges() const;
  // The machine that the model counts with.
  std::string explainMachine() const;

  // The ops of calls are kept in `spans`, up to `room` of them; the number of those that were run. Only
  // in turn; recovery ends it.
  bool isTraced() const { return isTraced_; }
  void trace(engine::OpSpan* spans, std::size_t room);
  std::size_t endTrace();

  Status firstError() const { return core()->watch.firstError(); }
  // The same, if it is for good: not if the next call may recover it.
  Status end() const;
  Status abort() { return core()->watch.abort(); }
  // The same for another cause, which all ranks report. Any thread.
  Status fail(const Status& cause) { return core()->watch.declare(cause); }
  Status lookAround();
  // Waits for all calls issued so far.
  Status finish();
  // And for the other ranks, where this one may be ahead of them. Only in turn.
  Status awaitOthers() { return core_->watch.finish(config_.timeoutMs); }
  // Ends what is in flight, bounded, so that the object may be destroyed.
  void shutDown();

  // Pre-multiplied sums. The operation's number counts from 0.
  int addScalar(reduce::DType type, const void* scalar);
  Status scalarOf(int op, reduce::DType type, std::array<std::byte, 8>* scalar) const;
  Status dropScalar(int op);

  // As it is now: recovery replaces it.
  std::shared_ptr<Core> core() const;

  // Do its ranks reach each other's heaps, but not all memory, as threads do?
  bool sharesHeaps() const;

  std::size_t sharedBytes() const;
  std::size_t planBytes() const { return planBytes_.load(std::memory_order_relaxed); }
  std::size_t otherBytes() const;
  // Bytes of payload that this rank has put into, stored to or read from its peers.
  std::uint64_t movedBytes() const;

 private:
  struct Scalar {
    reduce::DType type;
    std::array<std::byte, 8> value;
    bool live;
  };
  // Both complete *launch.
  [[gnu::always_inline]] Status launch(const plan::Call& call, engine::Launch* launch,
                                       int timeoutMs, const char* label);
  [[gnu::always_inline]] Status launchOrThrow(const plan::Call& call, engine::Launch* launch,
                                              int timeoutMs, const char* label);
  Status runPairsOrThrow(std::span<const engine::PairOp> pairs, int timeoutMs, const char* label);
  Status exchange(const Operation& operation, const char* label);
  [[gnu::always_inline]] Status beginCall(int timeoutMs);
  void noteRepeat(const Core& core, const plan::Call& call, const plan::Plan& plan);
  Status runOpening(Core& core, const plan::Call& call, engine::Launch* launch, plan::Trial* trial);
  [[gnu::always_inline]] Status runPlan(Core& core, const engine::Launch& launch,
                                        plan::Trial* trial) const;
  template <class Body>
  [[gnu::always_inline]] Status failingAll(Body&& body);
  [[gnu::always_inline]] Status runObserved(Core& core, const engine::Launch& launch) const;
  Status runTimed(Core& core, const engine::Launch& launch, plan::Trial& trial) const;
  Status judge(Core& core, plan::Trial& trial, int timeoutMs);
  Status explain(const plan::Call& call, std::string* line, plan::Decision* decision);
  Status repair(int timeoutMs);

  const std::uint32_t rank_, ranks_, localRank_, localRanks_;
  engine::CallerTeam* const callers_;
  const bool callersHaveCores_;
  const CommConfig config_;
  const PeerName me_;
  // Changed by the call whose turn it is, under the lock; that call may read it without.
  std::shared_ptr<Core> core_;
  mutable std::mutex coreMutex_;
  engine::Turns turns_;
  Repeat repeat_;
  engine::OpTrace trace_;
  bool isTraced_ = false;
  std::atomic<std::size_t> planBytes_{0};
  mutable std::mutex scalarsMutex_;
  std::vector<Scalar> scalars_;
};

// An exception on this rank alone would leave its peers waiting: it fails the call on all.
template <class Body>
inline Status Communicator::failingAll(Body&& body) {
  try {
    return body();
  } catch (...) {
    return core_->watch.settle(statusOfException());
  }
}

inline Status Communicator::runRepeat(const void* in, void* out) {
  return failingAll([&]() __attribute__((always_inline)) {
    Core& core = *core_;
    const plan::Plan& plan = *repeat_.plan;
    core.watch.enter(plan, config_.timeoutMs, nullptr);
    // As in any call: a rank that has failed relies on nobody touching its buffers.
    if (core.watch.isBroken()) [[unlikely]]
      return core.watch.settle(core.watch.firstError());
    return core.watch.settle(core.executor.runAgain(plan, static_cast<const std::byte*>(in),
                                                    static_cast<std::byte*>(out)));
  });
}

}  // namespace weft::comm
