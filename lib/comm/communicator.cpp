// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/rank_list.h"
#include "base/text.h"

namespace weft {

namespace {
constexpr int kShutDownMs = 1000;
}

Communicator::Communicator(Parts parts)
    : parts_(std::move(parts)),
      watch_(*parts_.transport, parts_.rank, parts_.names, parts_.config.name,
             parts_.farRanks.get()),
      executor_(*parts_.transport, watch_, parts_.rank, parts_.waiting, parts_.lanes),
      pairs_(*parts_.transport, watch_, parts_.rank, parts_.waiting),
      plans_(parts_.tuning, parts_.target) {}

// An error of usage had no effect; any other is the end of the communicator, for all ranks.
Status Communicator::settle(const Status& status) {
  watch_.leave();
  if (status.ok() || status.code() == Code::InvalidArgument || status.code() == Code::InvalidUsage)
    return status;
  return status.code() == Code::RemoteError ? watch_.lost(status.text()) : watch_.declare(status);
}

Status Communicator::run(const Call& call, const void* in, void* out, const void* scalar,
                         int timeoutMs, const char* label) {
  if (watch_.isBroken()) return watch_.verdict();
  const Plan* plan = nullptr;
  WEFT_TRY(plans_.find(call, &plan));
  planBytes_.store(plans_.bytes(), std::memory_order_relaxed);
  watch_.enter(*plan, timeoutMs, label);
  return settle(executor_.run({.plan = plan,
                               .in = static_cast<const std::byte*>(in),
                               .out = static_cast<std::byte*>(out),
                               .scalar = scalar}));
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
  if (watch_.isBroken()) return watch_.verdict();
  watch_.enterPairs(operation.timeoutMs, label);
  return settle(pairs_.run(operation.pairs));
}

Status Communicator::explain(const Call& call, std::string* line) {
  PlanCache own(parts_.tuning,
                parts_.target);  // not the hot path's, which another thread may be using
  const Plan* plan = nullptr;
  WEFT_TRY(own.find(call, &plan));
  *line = text(collectiveName(call.collective), ": ", plan->algorithm, ", ", plan->segments,
               " segment(s) of ", plan->segmentBytes, " bytes, ", plan->ops.size(),
               " ops, transport ", parts_.transport->name());
  return {};
}

Status Communicator::explainChoice(const Call& call, std::string* lines) {
  WEFT_TRY(explain(call, lines));
  std::string list;
  for (const Form& form : formsOf(call, parts_.tuning)) {
    std::array<char, 32> us;
    std::snprintf(us.data(), us.size(), " %.*f us", form.ns < 99500 ? 2 : 0, form.ns / 1000);
    list += text(list.empty() ? "" : ", ", form.name, us.data(),
                 form.name != "shared" || parts_.tuning.sharesAll
                     ? ""
                     : " (where all buffers are of weftMemAlloc)");
  }
  *lines += text("\n", reasonFor(call, parts_.tuning), " decides; estimates: ", list);
  return {};
}

std::string Communicator::explainMachine() const {
  const Ground& ground = parts_.tuning.ground;
  return text("machine: ", ground.cores, " cores for ", parts_.ranks,
              " ranks; rank 0 has these numbers from ", originName(parts_.calibrated), "\n",
              weft::describe(ground.machine));
}

std::string Communicator::explainEdges() const {
  std::map<std::string, std::vector<std::uint32_t>> ways;
  for (std::uint32_t r = 0; r < parts_.ranks; ++r)
    if (r != parts_.rank) ways[parts_.transport->describe(r)].push_back(r);
  std::string lines;
  for (const auto& [way, ranks] : ways)
    lines += text(lines.empty() ? "" : "\n", rankList(ranks), ": ", way);
  return lines;
}

Status Communicator::lookAround() {
  WEFT_TRY(watch_.verdict());
  // Calls in flight look around by themselves; the peers' descriptors are theirs meanwhile.
  if (!turns_.beginIssue()) return {};
  const Status status = turns_.allDone() ? watch_.lookAround() : Status();
  turns_.endIssue();
  return status;
}

Status Communicator::finish() {
  if (turns_.awaitAll(Deadline::in(parts_.config.timeoutMs))) return watch_.verdict();
  return Status::error(Code::Timeout,
                       text("communicator ", name(), ": queued calls did not end within ",
                            parts_.config.timeoutMs, " ms; fix: weftCommAbort"));
}

void Communicator::shutDown() {
  if (turns_.allDone()) return;
  (void)watch_.abort();
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

std::size_t Communicator::otherBytes() const {
  return sizeof(*this) + executor_.bytes() + parts_.ranks * (sizeof(PeerName) + 256);
}

}  // namespace weft
