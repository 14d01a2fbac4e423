// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/mark.h"
#include "base/now.h"
#include "base/rank_list.h"
#include "base/text.h"
#include "base/threads.h"
#include "comm/moved_buffers.h"
#include "comm/recover.h"
#include "plan/plan_hash.h"
#include "transports/mapping.h"

namespace weft::comm {

namespace {
constexpr int kShutDownMs = 1000;
}

Core::Parts::~Parts() {
  if (transport) watch::leaveForGood(*transport, remoteRanks.get());
}

Core::Core(Parts made)
    : parts(std::move(made)),
      watch(*parts.transport, parts.rank, parts.names, parts.config.name, parts.remoteRanks.get()),
      executor(*parts.transport, watch, parts.rank, parts.waiting, parts.lanes, parts.crew),
      pairs(*parts.transport, watch, parts.rank, parts.waiting,
            engine::tunePairs(parts.tuning.costs.machine), parts.crew),
      plans(parts.tuning, parts.target) {}

Communicator::Communicator(std::unique_ptr<Core> core)
    : rank_(core->parts.rank),
      ranks_(core->parts.ranks),
      localRank_(core->parts.localRank),
      localRanks_(core->parts.localRanks),
      callers_(core->parts.config.callers),
      callersHaveCores_(callers_ != nullptr && core->parts.crew.cores >= callers_->size()),
      config_(core->parts.config),
      me_(core->parts.names[rank_]),
      core_(std::move(core)) {}

std::shared_ptr<Core> Communicator::core() const {
  const std::lock_guard lock(coreMutex_);
  return core_;
}

Status Communicator::end() const {
  const Status firstError = core()->watch.firstError();
  return watch::isRecoverable(firstError) ? Status() : firstError;
}

// Before a call on a communicator that has failed: recovers it, or returns its first error again.
Status Communicator::repair(int timeoutMs) {
  const Status firstError = core_->watch.firstError();
  if (!watch::isRecoverable(firstError)) return firstError;
  std::unique_ptr<Core> made;
  const Status recovered = recover(*core_, Deadline::in(timeoutMs), &made);
  if (!recovered.ok()) {
    ErrorData data = firstError.data();
    data.code = Code::RemoteError;
    data.what += "; not recovered: " + recovered.message();
    data.missing = recovered.data().missing;
    if (!recovered.data().fix.empty()) data.fix = recovered.data().fix;
    return core_->watch.declare(Status::error(std::move(data)));
  }
  repeat_.plan = nullptr;
  std::shared_ptr<Core> old = std::move(made);
  const std::lock_guard lock(coreMutex_);
  core_.swap(old);
  return {};
}

inline Status Communicator::launch(const plan::Call& call, engine::Launch* launch, int timeoutMs,
                                   const char* label) {
  return failingAll([&]() __attribute__((always_inline)) {
    return launchOrThrow(call, launch, timeoutMs, label);
  });
}

// Before a collective is entered.
inline Status Communicator::beginCall(int timeoutMs) {
  if (core_->watch.isBroken()) WEFT_TRY(repair(timeoutMs));
  Core& core = *core_;
  if (core.watch.calls() < core.failedUpTo && WEFT_MARK("a call failed before recovery")) {
    core.watch.passOver();
    return core.failure;
  }
  return {};
}

inline Status Communicator::launchOrThrow(const plan::Call& call, engine::Launch* launch,
                                          int timeoutMs, const char* label) {
  repeat_.plan = nullptr;  // whose memory the next find() may free
  WEFT_TRY(beginCall(timeoutMs));
  Core& core = *core_;
  WEFT_TRY(core.plans.find(call, &launch->plan));
  planBytes_.store(core.plans.bytes(), std::memory_order_relaxed);
  core.watch.enter(*launch->plan, timeoutMs, label);
  // A rank that has failed in the meantime relies on nobody touching its buffers.
  if (core.watch.isBroken()) return core.watch.settle(core.watch.firstError());
  plan::Trial* const trial = core.plans.trial();
  const Status ran = launch->plan->opening != 0 ? runOpening(core, call, launch, trial)
                                                : runPlan(core, *launch, trial);
  WEFT_TRY(core.watch.settle(ran));
  if (launch->plan->inRing) noteRepeat(core, call, *launch->plan);
  return trial != nullptr && trial->isDue() ? judge(core, *trial, timeoutMs) : Status();
}

void Communicator::noteRepeat(const Core& core, const plan::Call& call, const plan::Plan& plan) {
  if (!core.plans.isSettled() || plan.expected.leastNs > 0 || !call.algorithm.empty() ||
      !call.counts.empty() || call.reproducible != config_.reproducible ||
      call.op >= reduce::RedOp::PreMulSum || !core.executor.mayRunAgain(plan))
    return;
  repeat_ = {&plan, call.collective, call.type, call.op, call.root, call.count};
}

// One whose ranks reach each other's buffers, so registered ones where the heap has them.
Status Communicator::runOpening(Core& core, const plan::Call& call, engine::Launch* launch,
                                plan::Trial* trial) {
  MovedBuffers moved(*core.parts.transport);
  moved.use(plan::extentsOf(call, rank_, ranks_), launch);
  const Status ran = runPlan(core, *launch, trial);
  if (!ran.ok()) return ran;
  moved.finish();
  if (launch->plan->otherwise) core.plans.learn(!core.executor.refused());
  return {};
}

inline Status Communicator::runPlan(Core& core, const engine::Launch& launch,
                                    plan::Trial* trial) const {
  return trial == nullptr ? runObserved(core, launch) : runTimed(core, launch, *trial);
}

Status Communicator::runTimed(Core& core, const engine::Launch& launch, plan::Trial& trial) const {
  const double entered = nowNs();
  WEFT_TRY(core.executor.run(launch));
  const double left = nowNs();
  const plan::Plan& plan = *launch.plan;
  std::optional<bool> shared;
  if (plan.otherwise) shared = !core.executor.refused();
  trial.ran(entered, left, shared);
  return {};
}

// All ranks' times become known to all, at the end of a call that all have made.
Status Communicator::judge(Core& core, plan::Trial& trial, int timeoutMs) {
  plan::Call call;
  call.collective = schedule::Collective::AllReduce;
  call.type = reduce::DType::I64;
  call.op = trial.togetherBy();
  call.count = trial.times().size();
  call.algorithm = "one-shot";  // one form only
  std::int64_t* const times = trial.times().data();
  WEFT_TRY(run(call, times, times, nullptr, timeoutMs, "times of forms"));
  core.plans.judge(trial);
  return {};
}

// Rank 0's calibration is that of all, so rank 0 doubts it.
inline Status Communicator::runObserved(Core& core, const engine::Launch& launch) const {
  const bool isForeseen = launch.plan->expected.leastNs > 0;
  if (rank_ != 0 || !isForeseen || !core.expectation.isDue()) return core.executor.run(launch);
  const double start = nowNs();
  WEFT_TRY(core.executor.run(launch));
  if (core.expectation.disagrees(launch.plan->expected, nowNs() - start))
    tune::doubt(core.parts.calibrated);
  return {};
}

Status Communicator::run(const plan::Call& call, const void* in, void* out, const void* scalar,
                         int timeoutMs, const char* label) {
  engine::Launch made{.in = static_cast<const std::byte*>(in),
                      .out = static_cast<std::byte*>(out),
                      .scalar = scalar};
  return launch(call, &made, timeoutMs, label);
}

Status Communicator::run(const plan::Call& call, const void* in, void* out,
                         plan::Epilogue& epilogue, int timeoutMs, const char* label) {
  engine::Launch made{.in = static_cast<const std::byte*>(in),
                      .out = static_cast<std::byte*>(out),
                      .epilogue = &epilogue};
  return launch(call, &made, timeoutMs, label);
}

Status Communicator::run(const Operation& operation) {
  const char* label = operation.label.empty() ? nullptr : operation.label.c_str();
  if (operation.isPairs) return runPairs(operation.pairs, operation.timeoutMs, label);
  if (operation.call.exchanges) return failingAll([&] { return exchange(operation, label); });
  plan::Call call = operation.call;
  call.counts = operation.counts;
  call.displs = operation.displs;
  call.algorithm = operation.algorithm;
  return run(call, operation.in, operation.out, operation.scalar.data(), operation.timeoutMs,
             label);
}

Status Communicator::runPairs(std::span<const engine::PairOp> pairs, int timeoutMs,
                              const char* label) {
  return failingAll([&] { return runPairsOrThrow(pairs, timeoutMs, label); });
}

Status Communicator::runPairsOrThrow(std::span<const engine::PairOp> pairs, int timeoutMs,
                                     const char* label) {
  if (core_->watch.isBroken()) WEFT_TRY(repair(timeoutMs));
  core_->watch.enterPairs(timeoutMs, label);
  MovedBuffers moved(*core_->parts.transport);
  std::vector<engine::PairOp> room;
  const Status ran = core_->pairs.run(moved.use(pairs, &room));
  if (ran.ok()) moved.finish();
  return core_->watch.settle(ran);
}

// A collective in the order of calls, though no plan. Who sends to its root alone may be ahead.
Status Communicator::exchange(const Operation& operation, const char* label) {
  WEFT_TRY(beginCall(operation.timeoutMs));
  Core& core = *core_;
  const plan::Call& call = operation.call;
  core.watch.enter({plan::fingerprintOf(call, ranks_, {}), plan::packWhat(call), 0,
                    schedule::isRooted(call.collective)},
                   operation.timeoutMs, label);
  MovedBuffers moved(*core.parts.transport);
  std::vector<engine::PairOp> room;
  const Status ran = core.pairs.runCollective(moved.use(operation.pairs, &room));
  if (ran.ok()) moved.finish();
  return core.watch.settle(ran);
}

Status Communicator::allGather(const void* mine, void* all, std::size_t count, reduce::DType type,
                               int timeoutMs, const char* label) {
  plan::Call call;
  call.collective = schedule::Collective::AllGather;
  call.type = type;
  call.count = count;
  return run(call, mine, all, nullptr, timeoutMs, label);
}

// Decided anew: the hot path's plans may be in use by another thread.
Status Communicator::explain(const plan::Call& call, std::string* line, plan::Decision* decision) {
  const std::shared_ptr<Core> core = this->core();
  const Core::Parts& parts = core->parts;
  std::unique_ptr<plan::Plan> plan;
  const std::optional<plan::PlanCache::Findings> found = core->plans.findings(call);
  WEFT_TRY(plan::decide(call, parts.tuning, decision, found ? &found->chosen : nullptr));
  WEFT_TRY(plan::bindDecision(*decision, call, parts.tuning, parts.target, &plan));
  std::array<char, 20> hash;
  std::snprintf(hash.data(), hash.size(), "%016" PRIx64, plan::hashOf(*plan));
  *line = text(plan::collectiveName(call.collective), ": ", plan->algorithm, ", ", plan->segments,
               " segment(s) of ", plan->segmentBytes, " bytes, ", plan->ops.size(), " ops (",
               hash.data(), "), transport ", parts.transport->name());
  return {};
}

Status Communicator::explain(const plan::Call& call, std::string* line) {
  plan::Decision decision;
  return explain(call, line, &decision);
}

namespace {

std::string microseconds(double ns) {
  std::array<char, 32> us;
  std::snprintf(us.data(), us.size(), " %.*f us", ns < 99500 ? 2 : 0, ns / 1000);
  return us.data();
}

std::string describe(const plan::PlanCache::Findings& found, const plan::Call& call,
                     const plan::Tuning& tuning) {
  return joined(found.ns, ", ",
                [&](const auto& form) {
                  return text(nameOf(form.first, call, tuning), microseconds(form.second));
                }) +
         text("; so calls run ", nameOf(found.chosen, call, tuning));
}

}  // namespace

Status Communicator::explainChoice(const plan::Call& call, std::string* lines) {
  plan::Decision decision;
  WEFT_TRY(explain(call, lines, &decision));
  const std::string list = joined(decision.estimates, ", ", [](const plan::Estimate& estimate) {
    return text(estimate.name, microseconds(estimate.ns),
                estimate.onlyShared ? " (where all buffers are of weftMemAlloc)" : "");
  });
  *lines += text("\n", decision.why, " decides; estimates: ", list);
  if (const auto found = core()->plans.findings(call))
    *lines += text("\nof calls here took: ", describe(*found, call, core()->parts.tuning));
  const plan::CostParameters& costs = core()->parts.tuning.costs;
  if (costs.memoryNodes.empty()) return {};
  const plan::FarBytes far =
      plan::farBytesOf(decision.shared ? *decision.shared : decision.schedule, call, costs, rank_);
  *lines +=
      text("\nfar memory: of other NUMA nodes rank ", rank_, " (on ", costs.memoryNodes[rank_],
           ") writes ", std::llround(far.written), " bytes and reads ", std::llround(far.read));
  return {};
}

std::string Communicator::explainMachine() const {
  const std::shared_ptr<Core> core = this->core();
  const plan::CostParameters& costs = core->parts.tuning.costs;
  return text(
      "machine: ", costs.cores, " cores for ", ranks_, " ranks; rank 0 has these numbers from ",
      weft::tune::describe(core->parts.calibrated), "\n", weft::tune::describe(costs.machine));
}

std::string Communicator::explainEdges() const {
  const std::shared_ptr<Core> core = this->core();
  std::map<std::string, std::vector<std::uint32_t>> ways;
  for (std::uint32_t r = 0; r < ranks_; ++r)
    if (r != rank_) ways[core->parts.transport->describe(r)].push_back(r);
  return joined(ways, "\n",
                [](const auto& edge) { return text(rankList(edge.second), ": ", edge.first); });
}

void Communicator::trace(engine::OpSpan* spans, std::size_t room) {
  trace_ = engine::OpTrace(spans, room);
  isTraced_ = true;
  repeat_.plan = nullptr;
  core_->executor.record(&trace_);
}

std::size_t Communicator::endTrace() {
  core_->executor.record(nullptr);
  isTraced_ = false;
  return trace_.made();
}

Status Communicator::lookAround() {
  const std::shared_ptr<Core> core = this->core();
  WEFT_TRY(core->watch.firstError());
  return turns_.allDone() ? core->watch.lookAround() : Status();  // calls look by themselves
}

Status Communicator::finish() {
  if (turns_.awaitAll(Deadline::in(config_.timeoutMs))) return firstError();
  return Status::error(Code::Timeout, "communicator ", name(), ": queued calls did not end within ",
                       config_.timeoutMs, " ms; fix: weftCommAbort");
}

void Communicator::shutDown() {
  turns_.close();
  if (turns_.isIdle()) return;
  (void)abort();
  (void)turns_.awaitAll(Deadline::in(kShutDownMs));
}

int Communicator::addScalar(reduce::DType type, const void* scalar) {
  const std::lock_guard lock(scalarsMutex_);
  Scalar added{type, {}, true};
  std::memcpy(added.value.data(), scalar, reduce::sizeOf(type));
  for (std::size_t i = 0; i < scalars_.size(); ++i) {
    if (scalars_[i].live) continue;
    scalars_[i] = added;
    return static_cast<int>(i);
  }
  scalars_.push_back(added);
  return static_cast<int>(scalars_.size() - 1);
}

Status Communicator::scalarOf(int op, reduce::DType type, std::array<std::byte, 8>* scalar) const {
  const std::lock_guard lock(scalarsMutex_);
  const std::size_t i = static_cast<std::size_t>(op);
  if (op < 0 || i >= scalars_.size() || !scalars_[i].live)
    return Status::error(
        Code::InvalidArgument,
        "op is neither built in nor made by weftRedOpCreatePreMulSum on communicator ", name());
  if (scalars_[i].type != type)
    return Status::error(Code::InvalidArgument, "op was made for ",
                         weft::reduce::name(scalars_[i].type), ", the call is for ",
                         weft::reduce::name(type), "; fix: make one op for each type");
  *scalar = scalars_[i].value;
  return {};
}

Status Communicator::dropScalar(int op) {
  const std::lock_guard lock(scalarsMutex_);
  const std::size_t i = static_cast<std::size_t>(op);
  if (op < 0 || i >= scalars_.size() || !scalars_[i].live)
    return Status::error(Code::InvalidArgument,
                         "op was not made by weftRedOpCreatePreMulSum on communicator ", name(),
                         ", or is destroyed already");
  scalars_[i].live = false;
  return {};
}

bool Communicator::sharesHeaps() const {
  const transport::Caps caps = core()->parts.transport->caps();
  return caps.shares && !caps.sharesAll;
}

std::size_t Communicator::sharedBytes() const {
  const std::shared_ptr<Core> core = this->core();
  const transport::Transport& transport = *core->parts.transport;
  return transport::residentBytes(transport.own().base(), transport.layout().size());
}

std::uint64_t Communicator::movedBytes() const { return core()->executor.movedBytes(); }

std::size_t Communicator::otherBytes() const {
  return sizeof(*this) + sizeof(Core) + core()->executor.bytes() +
         ranks_ * (sizeof(PeerName) + 256);
}

}  // namespace weft::comm
