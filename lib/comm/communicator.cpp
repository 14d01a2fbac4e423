// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/rank_list.h"
#include "base/text.h"
#include "comm/mend.h"

namespace weft {

namespace {
constexpr int kShutDownMs = 1000;
}

Core::Core(Parts made)
    : parts(std::move(made)),
      watch(*parts.transport, parts.rank, parts.names, parts.config.name, parts.farRanks.get()),
      executor(*parts.transport, watch, parts.rank, parts.waiting, parts.lanes),
      pairs(*parts.transport, watch, parts.rank, parts.waiting),
      plans(parts.tuning, parts.target) {}

Communicator::Communicator(std::unique_ptr<Core> core)
    : rank_(core->parts.rank),
      ranks_(core->parts.ranks),
      localRank_(core->parts.localRank),
      config_(core->parts.config),
      core_(std::move(core)) {}

std::shared_ptr<Core> Communicator::core() const {
  const std::lock_guard lock(coreMutex_);
  return core_;
}

Status Communicator::end() const {
  const Status verdict = core()->watch.verdict();
  return isMendable(verdict) ? Status() : verdict;
}

// An error of usage had no effect; any other is the end of the communicator, for all ranks.
Status Communicator::settle(const Status& status) {
  Watch& watch = core_->watch;
  watch.leave();
  if (status.ok() || status.code() == Code::InvalidArgument || status.code() == Code::InvalidUsage)
    return status;
  const Status verdict =
      status.code() == Code::RemoteError ? watch.lost(status.text()) : watch.declare(status);
  watch.awaitOthers();
  return verdict;
}

// Before a call on a communicator that has a verdict: mends it, or says the verdict again.
Status Communicator::repair(int timeoutMs) {
  const Status verdict = core_->watch.verdict();
  if (!isMendable(verdict)) return verdict;
  std::unique_ptr<Core> made;
  const Status mended = mend(*core_, Deadline::in(timeoutMs), &made);
  if (!mended.ok())
    return core_->watch.declare(
        Status::error(Code::RemoteError, text(verdict.text(), "; not mended: ", mended.text())));
  std::shared_ptr<Core> old = std::move(made);
  const std::lock_guard lock(coreMutex_);
  core_.swap(old);
  return {};
}

Status Communicator::launch(const Call& call, Launch launch, int timeoutMs, const char* label) {
  if (core_->watch.isBroken()) WEFT_TRY(repair(timeoutMs));
  Core& core = *core_;
  if (core.watch.calls() < core.failedUpTo) {
    core.watch.passOver();
    return core.failure;
  }
  WEFT_TRY(core.plans.find(call, &launch.plan));
  planBytes_.store(core.plans.bytes(), std::memory_order_relaxed);
  core.watch.enter(*launch.plan, timeoutMs, label);
  // Whoever has failed in the meantime counts on nobody touching its buffers.
  if (const Status verdict = core.watch.verdict(); !verdict.ok()) return settle(verdict);
  return settle(core.executor.run(launch));
}

Status Communicator::run(const Call& call, const void* in, void* out, const void* scalar,
                         int timeoutMs, const char* label) {
  return launch(call,
                {.in = static_cast<const std::byte*>(in),
                 .out = static_cast<std::byte*>(out),
                 .scalar = scalar},
                timeoutMs, label);
}

Status Communicator::run(const Call& call, const void* in, void* out, SumKernel& kernel,
                         int timeoutMs, const char* label) {
  return launch(call,
                {.in = static_cast<const std::byte*>(in),
                 .out = static_cast<std::byte*>(out),
                 .kernel = &kernel},
                timeoutMs, label);
}

Status Communicator::run(const Operation& operation) {
  const char* label = operation.label.empty() ? nullptr : operation.label.c_str();
  if (!operation.isPairs) {
    Call call = operation.call;
    call.counts = operation.counts;
    call.displs = operation.displs;
    call.algorithm = operation.algorithm;
    return run(call, operation.in, operation.out, operation.scalar.data(), operation.timeoutMs,
               label);
  }
  if (core_->watch.isBroken()) WEFT_TRY(repair(operation.timeoutMs));
  core_->watch.enterPairs(operation.timeoutMs, label);
  return settle(core_->pairs.run(operation.pairs));
}

Status Communicator::explain(const Call& call, std::string* line) {
  const std::shared_ptr<Core> core = this->core();
  PlanCache own(core->parts.tuning,
                core->parts.target);  // not the hot path's, which another thread may be using
  const Plan* plan = nullptr;
  WEFT_TRY(own.find(call, &plan));
  *line = text(collectiveName(call.collective), ": ", plan->algorithm, ", ", plan->segments,
               " segment(s) of ", plan->segmentBytes, " bytes, ", plan->ops.size(),
               " ops, transport ", core->parts.transport->name());
  return {};
}

Status Communicator::explainChoice(const Call& call, std::string* lines) {
  WEFT_TRY(explain(call, lines));
  const std::shared_ptr<Core> core = this->core();
  const Tuning& tuning = core->parts.tuning;
  std::string list;
  for (const Form& form : formsOf(call, tuning)) {
    std::array<char, 32> us;
    std::snprintf(us.data(), us.size(), " %.*f us", form.ns < 99500 ? 2 : 0, form.ns / 1000);
    list += text(list.empty() ? "" : ", ", form.name, us.data(),
                 form.name != "shared" || tuning.sharesAll
                     ? ""
                     : " (where all buffers are of weftMemAlloc)");
  }
  *lines += text("\n", reasonFor(call, tuning), " decides; estimates: ", list);
  return {};
}

std::string Communicator::explainMachine() const {
  const std::shared_ptr<Core> core = this->core();
  const Ground& ground = core->parts.tuning.ground;
  return text("machine: ", ground.cores, " cores for ", ranks_,
              " ranks; rank 0 has these numbers from ", originName(core->parts.calibrated), "\n",
              weft::describe(ground.machine));
}

std::string Communicator::explainEdges() const {
  const std::shared_ptr<Core> core = this->core();
  std::map<std::string, std::vector<std::uint32_t>> ways;
  for (std::uint32_t r = 0; r < ranks_; ++r)
    if (r != rank_) ways[core->parts.transport->describe(r)].push_back(r);
  std::string lines;
  for (const auto& [way, ranks] : ways)
    lines += text(lines.empty() ? "" : "\n", rankList(ranks), ": ", way);
  return lines;
}

Status Communicator::lookAround() {
  const std::shared_ptr<Core> core = this->core();
  WEFT_TRY(core->watch.verdict());
  // Calls in flight look around by themselves; the peers' descriptors are theirs meanwhile.
  if (!turns_.beginIssue()) return {};
  const Status status = turns_.allDone() ? core_->watch.lookAround() : Status();
  turns_.endIssue();
  return status;
}

Status Communicator::finish() {
  if (turns_.awaitAll(Deadline::in(config_.timeoutMs))) return verdict();
  return Status::error(Code::Timeout,
                       text("communicator ", name(), ": queued calls did not end within ",
                            config_.timeoutMs, " ms; fix: weftCommAbort"));
}

void Communicator::shutDown() {
  if (turns_.allDone()) return;
  (void)abort();
  (void)turns_.awaitAll(Deadline::in(kShutDownMs));
}

int Communicator::addScalar(DType type, const void* scalar) {
  const std::lock_guard lock(scalarsMutex_);
  Scalar added{type, {}, true};
  std::memcpy(added.value.data(), scalar, sizeOf(type));
  for (std::size_t i = 0; i < scalars_.size(); ++i) {
    if (scalars_[i].live) continue;
    scalars_[i] = added;
    return static_cast<int>(i);
  }
  scalars_.push_back(added);
  return static_cast<int>(scalars_.size() - 1);
}

Status Communicator::scalarOf(int op, DType type, std::array<std::byte, 8>* scalar) const {
  const std::lock_guard lock(scalarsMutex_);
  const std::size_t i = static_cast<std::size_t>(op);
  if (op < 0 || i >= scalars_.size() || !scalars_[i].live)
    return Status::error(
        Code::InvalidArgument,
        text("op is neither built in nor made by weftRedOpCreatePreMulSum on communicator ",
             name()));
  if (scalars_[i].type != type)
    return Status::error(
        Code::InvalidArgument,
        text("op was made for ", weft::name(scalars_[i].type), ", the call is for ",
             weft::name(type), "; fix: make one op for each type"));
  *scalar = scalars_[i].value;
  return {};
}

Status Communicator::dropScalar(int op) {
  const std::lock_guard lock(scalarsMutex_);
  const std::size_t i = static_cast<std::size_t>(op);
  if (op < 0 || i >= scalars_.size() || !scalars_[i].live)
    return Status::error(Code::InvalidArgument,
                         text("op was not made by weftRedOpCreatePreMulSum on communicator ",
                              name(), ", or is destroyed already"));
  scalars_[i].live = false;
  return {};
}

std::uint64_t Communicator::movedBytes() const { return core()->executor.movedBytes(); }

std::size_t Communicator::otherBytes() const {
  return sizeof(*this) + sizeof(Core) + core()->executor.bytes() +
         ranks_ * (sizeof(PeerName) + 256);
}

}  // namespace weft
