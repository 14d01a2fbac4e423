// SPDX-License-Identifier: Apache-2.0
#include "perf/limits/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>

#include "comm/layout.h"
#include "plan/cache.h"
#include "schedule/nodes.h"
#include "transports/shm/shm.h"

namespace weft::tools {
namespace {

using plan::BoundOp;

double cpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

plan::Tuning tuningOf(std::uint32_t ranks, std::uint32_t localRanks, const tune::Machine& machine) {
  plan::Tuning tuning;
  tuning.ranks = ranks;
  tuning.nodes = schedule::Nodes::even(localRanks, ranks / localRanks);
  tuning.costs.machine = machine;
  tuning.costs.cores = ranks;
  if (localRanks == ranks)
    tuning.direct = tuning.shares = true;
  else
    tuning.costs.between = plan::Between{tuning.nodes};
  return tuning;
}

plan::BindTarget targetOf(const plan::Tuning& tuning, const transport::WindowLayout& layout) {
  return {.ranks = tuning.ranks,
          .arrivalSlots = layout.arrivalSlots,
          .dense = layout.dense,
          .pairArrivalSlots = layout.pairArrivalSlots,
          .ring = layout.ring,
          .ringStages = layout.ringStages,
          .ringBytes = layout.ringBytes,
          .budget = {tuning.costs.arenaBytes, tuning.costs.stagingBytes},
          .streamMin = plan::streamMin(tuning.ranks, tuning.costs)};
}

plan::Call callOf(schedule::Collective collective, std::size_t bytes) {
  plan::Call call;
  call.collective = collective;
  call.type = reduce::DType::F32;
  call.count = bytes / sizeof(float);
  return call;
}

// Over all segments.
std::uint64_t bytesOf(const BoundOp& op, const plan::Plan& plan) {
  std::uint64_t bytes = 0;
  for (std::uint64_t s = 0; s < plan.segments && op.limit > s * plan.segmentBytes; ++s)
    bytes += std::min(op.max, op.limit - s * plan.segmentBytes);
  return bytes;
}

bool isMessage(BoundOp::Kind kind) {
  using enum BoundOp::Kind;
  return kind == Put || kind == PutInline || kind == PutDirect || kind == Raise || kind == Signal;
}

Status planOf(const plan::Call& call, const plan::Tuning& tuning, const plan::BindTarget& target,
              CallLimits* out) {
  const double start = cpuMs();
  plan::Decision decision;
  WEFT_TRY(decide(call, tuning, &decision));
  std::unique_ptr<plan::Plan> plan;
  WEFT_TRY(bindDecision(decision, call, tuning, target, &plan));
  *out = {plan->algorithm, plan->bytes(), cpuMs() - start, 0, 0, 0};
  for (const BoundOp& op : plan->ops) {
    if (!isMessage(op.kind)) continue;
    const bool isFar = tuning.nodes[op.peer] != tuning.nodes[target.rank];
    out->messages += plan->segments;
    out->remote += isFar ? plan->segments : 0;
    out->sentBytes += bytesOf(op, *plan);
  }
  return {};
}

Status planBusiest(const plan::Call& call, const plan::Tuning& tuning, plan::BindTarget target,
                   CallLimits* out) {
  CallLimits second;
  WEFT_TRY(planOf(call, tuning, target, out));
  target.rank = 1 % target.ranks;
  WEFT_TRY(planOf(call, tuning, target, &second));
  if (second.messages > out->messages) *out = second;
  return {};
}

Status planAll(const plan::Tuning& tuning, const plan::BindTarget& target, Limits* out) {
  using enum schedule::Collective;
  WEFT_TRY(planBusiest(callOf(Barrier, 0), tuning, target, &out->barrier));
  WEFT_TRY(planBusiest(callOf(AllReduce, kShortBytes), tuning, target, &out->shortSum));
  return planBusiest(callOf(AllReduce, kLongBytes), tuning, target, &out->longSum);
}

std::string kib(std::size_t bytes) { return fmt::format("{}", (bytes + 1023) >> 10); }
std::string mib(std::size_t bytes) { return fmt::format("{}", (bytes + (1 << 20) - 1) >> 20); }
std::string messagesOf(const CallLimits& call) {
  return fmt::format("{} ({})", call.messages, call.remote);
}
std::string descriptorsOf(const Limits& l) {
  return fmt::format("{} ({})", l.keptDescriptors, l.mostDescriptors);
}
double slowestMs(const Limits& l) {
  return std::max({l.barrier.planMs, l.shortSum.planMs, l.longSum.planMs});
}

}  // namespace

Limits limitsOf(std::uint32_t ranks, std::uint32_t localRanks, const tune::Machine& machine) {
  Limits limits{.ranks = ranks, .refused = {}, .barrier = {}, .shortSum = {}, .longSum = {}};
  plan::Tuning tuning = tuningOf(ranks, localRanks, machine);
  transport::WindowLayout layout;
  const Status fits = comm::layoutFor(tuning, localRanks == ranks, &layout);
  if (!fits.ok()) {
    limits.refused = fits.text();
    return limits;
  }
  tuning.costs.arenaBytes = layout.arenaBytes;
  tuning.costs.stagingBytes = tuning.costs.between ? layout.arenaBytes : layout.arenaBytes / 2;
  limits.windowBytes = layout.size();
  limits.createdBytes = layout.arrivals() + transport::kMaxLanes * layout.denseBytes();
  limits.keptDescriptors = shm::keptDescriptors(localRanks);
  limits.mostDescriptors = shm::mostDescriptors(localRanks);
  limits.refused = planAll(tuning, targetOf(tuning, layout), &limits).text();
  return limits;
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all{
      {"memory at creation, KiB", [](const Limits& l) { return kib(l.createdBytes); }},
      {"window, MiB of addresses", [](const Limits& l) { return mib(l.windowBytes); }},
      {"descriptors", descriptorsOf},
      {"largest plan, KiB", [](const Limits& l) { return kib(l.longSum.planBytes); }},
      {"slowest plan, ms", [](const Limits& l) { return fmt::format("{:.2f}", slowestMs(l)); }},
      {"barrier", [](const Limits& l) { return messagesOf(l.barrier); }},
      {"8 B", [](const Limits& l) { return messagesOf(l.shortSum); }},
      {"64 MiB", [](const Limits& l) { return messagesOf(l.longSum); }},
      {"64 MiB: MiB sent", [](const Limits& l) { return mib(l.longSum.sentBytes); }},
  };
  return all;
}

std::string tableOf(const std::vector<Limits>& rows) {
  std::string table = "| ranks |", rule = "|---:|";
  for (const Column& column : columns()) {
    table += fmt::format(" {} |", column.title);
    rule += "---:|";
  }
  table += "\n" + rule + "\n";
  for (const Limits& row : rows) {
    table += fmt::format("| {} |", row.ranks);
    if (!row.refused.empty()) table += fmt::format(" none: {} |", row.refused);
    for (const Column& column : columns())
      if (row.refused.empty()) table += fmt::format(" {} |", column.cell(row));
    table += "\n";
  }
  return table;
}

}  // namespace weft::tools
