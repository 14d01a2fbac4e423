// SPDX-License-Identifier: Apache-2.0
#include "perf/limits/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>
#include <random>

#include "bootstrap/bootstrap.h"
#include "comm/layout.h"
#include "comm/rounds.h"
#include "net/crypto.h"
#include "plan/cache.h"
#include "plan/staging_map.h"
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

plan::Tuning tuningOf(std::uint32_t ranks, std::uint32_t localRanks, std::uint32_t numaNodes,
                      const tune::Machine& machine) {
  plan::Tuning tuning;
  tuning.ranks = ranks;
  tuning.nodes = schedule::Nodes::even(localRanks, ranks / localRanks);
  tuning.costs.machine = machine;
  tuning.costs.cores = ranks;
  for (std::uint32_t r = 0; numaNodes > 1 && r < ranks; ++r)
    tuning.costs.memoryNodes.push_back(
        static_cast<std::int32_t>(r % localRanks * numaNodes / localRanks));
  if (localRanks == ranks && ranks % numaNodes == 0)
    tuning.nodes = schedule::Nodes::even(ranks / numaNodes, numaNodes);
  if (localRanks == ranks)
    tuning.direct = tuning.shares = tuning.maps = true;
  else
    tuning.costs.between = plan::Between{tuning.nodes};
  return tuning;
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

Status planOf(const Job& job, const plan::Call& call, std::uint32_t rank, CallLimits* out) {
  const double start = cpuMs();
  plan::Decision decision;
  std::unique_ptr<plan::Plan> plan;
  WEFT_TRY(job.decide(call, &decision));
  WEFT_TRY(job.plan(call, decision, rank, &plan));
  *out = {plan->algorithm, plan->bytes(), cpuMs() - start, 0, 0, 0, 0};
  const plan::FarBytes far = job.farBytesOf(call, decision, rank);
  out->farBytes = static_cast<std::uint64_t>(far.written + far.read);
  for (const BoundOp& op : plan->ops) {
    if (!isMessage(op.kind)) continue;
    out->messages += plan->segments;
    out->remote += job.areApart(op.peer, rank) ? plan->segments : 0;
    out->sentBytes += bytesOf(op, *plan);
  }
  return {};
}

Status planBusiest(const Job& job, const plan::Call& call, CallLimits* out) {
  CallLimits second;
  WEFT_TRY(planOf(job, call, 0, out));
  WEFT_TRY(planOf(job, call, 1 % job.ranks(), &second));
  if (second.messages > out->messages) *out = second;
  return {};
}

Status planAll(const Job& job, Limits* out) {
  using enum schedule::Collective;
  const auto of = [&](schedule::Collective collective, std::size_t bytes) {
    return callOf(collective, job.ranks(), bytes);
  };
  WEFT_TRY(planBusiest(job, of(Barrier, 0), &out->barrier));
  WEFT_TRY(planBusiest(job, of(AllReduce, kShortBytes), &out->shortSum));
  WEFT_TRY(planBusiest(job, of(AllReduce, kLongBytes), &out->longSum));
  for (const std::size_t record : comm::kSplitRecords) {
    CallLimits round;
    WEFT_TRY(planBusiest(job, comm::roundOf(record), &round));
    out->split.messages += round.messages;
    out->split.remote += round.remote;
  }
  return {};
}

void countFurther(std::uint32_t ranks, std::uint32_t localRanks, Limits* limits) {
  limits->further = {0, shm::furtherDescriptors(localRanks)};
  limits->firstOfRoot = limits->further;
  if (localRanks == ranks) return;
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t r = 0; r < ranks; ++r) hosts.push_back(r / localRanks);
  const control::LinkCosts link = control::linkCostsOf(0, hosts);
  limits->firstOfRoot.threads += link.threads;
  limits->firstOfRoot.descriptors += link.descriptors;
}

std::string queuePairsOf(const Job& job, schedule::Collective collective, std::size_t bytes) {
  const plan::Call call = callOf(collective, job.ranks(), bytes);
  plan::Decision decision;
  Status status = job.decide(call, &decision);
  std::size_t most = 0;
  for (std::uint32_t rank = 0; status.ok() && rank < std::min(job.ranks(), 2u); ++rank) {
    std::unique_ptr<plan::Plan> plan;
    status = job.plan(call, decision, rank, &plan);
    if (status.ok()) most = std::max(most, job.farPeersOf(*plan, rank).size());
  }
  return status.ok() ? fmt::format("{}", most) : status.text();
}

std::string kib(std::size_t bytes) { return fmt::format("{}", (bytes + 1023) >> 10); }
std::string mib(std::size_t bytes) { return fmt::format("{}", (bytes + (1 << 20) - 1) >> 20); }
std::string messagesOf(const CallLimits& call) {
  return fmt::format("{} ({})", call.messages, call.remote);
}
std::string descriptorsOf(const Limits& l) {
  return fmt::format("{} ({})", l.keptDescriptors, l.mostDescriptors);
}
std::string furtherOf(const Limits& l) {
  return fmt::format("{}, {} ({}, {})", l.further.descriptors, l.further.threads,
                     l.firstOfRoot.descriptors, l.firstOfRoot.threads);
}
std::string rootOf(const Limits& l) {
  return fmt::format("{}, {:.1f}", l.rootConnections,
                     static_cast<double>(l.rootRoundBytes) / (1 << 20));
}
double slowestMs(const Limits& l) {
  return std::max({l.barrier.planMs, l.shortSum.planMs, l.longSum.planMs});
}

// The table of what each rank gives in a round, to each connection: records that are alike but for
// some bytes (perf/meeting).
void countMeeting(std::uint32_t ranks, std::uint32_t localRanks, Limits* limits) {
  constexpr std::size_t kRecordBytes = 300, kOwnBytes = 24;
  std::mt19937 random(1);
  std::vector<net::Bytes> parts(ranks, net::Bytes(kRecordBytes, std::byte{1}));
  for (net::Bytes& part : parts)
    std::generate_n(part.begin(), kOwnBytes, [&] { return static_cast<std::byte>(random()); });
  const bool hubs = bootstrap::haveHubs(static_cast<int>(ranks));
  limits->rootConnections = hubs ? ranks / localRanks : ranks;
  limits->rootRoundBytes = limits->rootConnections * bootstrap::encodeParts(parts).size();
}

}  // namespace

Job::Job(std::uint32_t ranks, std::uint32_t localRanks, const tune::Machine& machine,
         std::uint32_t numaNodes)
    : Job(tuningOf(ranks, localRanks, numaNodes, machine), localRanks == ranks) {
  if (!tuning_.costs.between) tuning_.costs.stagingBytes = layout_.arenaBytes / 2;
}

Job::Job(plan::Tuning tuning, bool oneHost)
    : tuning_(std::move(tuning)),
      oneHost_(oneHost),
      fits_(comm::layoutFor(tuning_, !tuning_.costs.between, &layout_)) {
  plan::CostParameters& costs = tuning_.costs;
  const auto inHost = static_cast<std::uint64_t>(comm::stagingKbInHost(costs.machine)) << 10;
  costs.arenaBytes = layout_.arenaBytes;
  costs.stagingBytes = costs.between ? layout_.arenaBytes : inHost;
  costs.longStagingBytes = costs.between ? 0 : 2 * inHost;
}

transport::ArrivalRegions Job::regionsOf(bool inRing) const { return target().regions(inRing); }

plan::BindTarget Job::target() const {
  plan::BindTarget target = comm::targetFor(tuning_, layout_);
  if (!oneHost_) target.ring = 0;
  return target;
}

Status Job::keepOnly(const plan::Decision& decision) {
  std::uint32_t most = 1;
  for (const std::uint32_t rank : decision.schedule.typical)
    most = std::max(
        most,
        plan::StagingMap::mostOf(decision.schedule, decision.schedule.program(rank)).arrivals);
  const std::uint64_t slots = std::uint64_t{tuning_.ranks} * most;
  if (slots > ~std::uint32_t{0})
    return Status::error(Code::InvalidUsage, "algorithm ", decision.schedule.name, " needs ", slots,
                         " arrival slots in each of ", tuning_.ranks,
                         " ranks, which are counted with 32 bits; fix: choose another algorithm");
  layout_.arrivalSlots = static_cast<std::uint32_t>(slots);
  layout_.dense = std::min(layout_.dense, most);
  return {};
}

Status Job::decide(const plan::Call& call, plan::Decision* out) const {
  return plan::decide(call, tuning_, out);
}

Status Job::plan(const plan::Call& call, const plan::Decision& decision, std::uint32_t rank,
                 std::unique_ptr<plan::Plan>* out) const {
  plan::BindTarget target = this->target();
  target.rank = rank;
  return bindDecision(decision, call, tuning_, target, out);
}

plan::FarBytes Job::farBytesOf(const plan::Call& call, const plan::Decision& decision,
                               std::uint32_t rank) const {
  return plan::farBytesOf(decision.shared ? *decision.shared : decision.schedule, call,
                          tuning_.costs, rank);
}

std::vector<std::uint32_t> Job::farTargetsOf(const plan::Plan& plan, std::uint32_t rank) const {
  return farPeersBy(plan, rank, false);
}

std::vector<std::uint32_t> Job::farPeersOf(const plan::Plan& plan, std::uint32_t rank) const {
  return farPeersBy(plan, rank, true);
}

std::vector<std::uint32_t> Job::farPeersBy(const plan::Plan& plan, std::uint32_t rank,
                                           bool waits) const {
  std::vector<std::uint32_t> peers;
  for (const BoundOp& op : plan.ops) {
    const bool counts = isMessage(op.kind) || (waits && op.kind == BoundOp::Kind::Wait);
    if (counts && areApart(op.peer, rank)) peers.push_back(op.peer);
  }
  std::ranges::sort(peers);
  const auto same = std::ranges::unique(peers);
  peers.erase(same.begin(), same.end());
  return peers;
}

plan::Call callOf(schedule::Collective collective, std::uint32_t ranks, std::size_t bytes) {
  using enum schedule::Collective;
  const bool isVector = collective == AllReduce || collective == Broadcast || collective == Reduce;
  plan::Call call;
  call.collective = collective;
  call.type = reduce::DType::F32;
  if (collective == Barrier) return call;
  const std::size_t share = isVector ? bytes : std::max(bytes / ranks, kShortBytes);
  call.count = share / sizeof(float);
  return call;
}

Limits limitsOf(std::uint32_t ranks, std::uint32_t localRanks, const tune::Machine& machine,
                std::uint32_t numaNodes) {
  Limits limits{.ranks = ranks,
                .refused = {},
                .numaNodes = numaNodes,
                .barrier = {},
                .shortSum = {},
                .longSum = {},
                .split = {},
                .further = {},
                .firstOfRoot = {}};
  const Job job(ranks, localRanks, machine, numaNodes);
  limits.refused = job.fits().text();
  if (!job.fits().ok()) return limits;
  const transport::WindowLayout& layout = job.layout();
  limits.windowBytes = layout.size();
  limits.createdBytes = layout.arrivals() + transport::kMaxLanes * layout.denseBytes();
  limits.keptDescriptors = shm::keptDescriptors(localRanks);
  limits.mostDescriptors = shm::mostDescriptors(localRanks);
  countMeeting(ranks, localRanks, &limits);
  countFurther(ranks, localRanks, &limits);
  limits.refused = planAll(job, &limits).text();
  return limits;
}

std::vector<Column> columns(bool far) {
  std::vector<Column> all{
      {"memory at creation, KiB", [](const Limits& l) { return kib(l.createdBytes); }},
      {"window, MiB of addresses", [](const Limits& l) { return mib(l.windowBytes); }},
      {"descriptors", descriptorsOf},
      {"of a further communicator: descriptors, threads", furtherOf},
      {"bootstrap: connections, MiB a round", rootOf},
      {"largest plan, KiB", [](const Limits& l) { return kib(l.longSum.planBytes); }},
      {"slowest plan, ms", [](const Limits& l) { return fmt::format("{:.2f}", slowestMs(l)); }},
      {"barrier", [](const Limits& l) { return messagesOf(l.barrier); }},
      {"8 B", [](const Limits& l) { return messagesOf(l.shortSum); }},
      {"64 MiB", [](const Limits& l) { return messagesOf(l.longSum); }},
      {"split", [](const Limits& l) { return messagesOf(l.split); }},
      {"64 MiB: MiB sent", [](const Limits& l) { return mib(l.longSum.sentBytes); }},
  };
  if (far)
    all.push_back(
        {"MiB between NUMA nodes", [](const Limits& l) { return mib(l.longSum.farBytes); }});
  return all;
}

std::string tableOf(const std::vector<Limits>& rows) {
  std::string table = "| ranks |", rule = "|---:|";
  const std::vector<Column> all =
      columns(std::ranges::any_of(rows, [](const Limits& l) { return l.numaNodes > 1; }));
  for (const Column& column : all) {
    table += fmt::format(" {} |", column.title);
    rule += "---:|";
  }
  table += "\n" + rule + "\n";
  for (const Limits& row : rows) {
    table += fmt::format("| {} |", row.ranks);
    if (!row.refused.empty()) table += fmt::format(" none: {} |", row.refused);
    for (const Column& column : all)
      if (row.refused.empty()) table += fmt::format(" {} |", column.cell(row));
    table += "\n";
  }
  return table;
}

std::string queuePairsOf(const std::vector<std::uint32_t>& ranks, std::uint32_t localRanks,
                         const tune::Machine& machine) {
  using enum schedule::Collective;
  constexpr schedule::Collective kAll[] = {Barrier, AllReduce, AllGather, ReduceScatter, Broadcast,
                                           Reduce,  Gather,    Scatter,   AllToAll};
  std::string table = "| ranks |", rule = "|---:|";
  for (const schedule::Collective one : kAll) {
    table += fmt::format(" {} |", nameOf(one));
    rule += "---:|";
  }
  table += "\n" + rule + "\n";
  for (const std::uint32_t n : ranks) {
    const Job job(n, std::min(n, localRanks), machine);
    table += fmt::format("| {} |", n);
    if (!job.fits().ok()) table += " none |";
    for (const schedule::Collective one : kAll)
      if (job.fits().ok())
        table += fmt::format(" {}, {} |", queuePairsOf(job, one, kShortBytes),
                             queuePairsOf(job, one, kLongBytes));
    table += "\n";
  }
  return table;
}

}  // namespace weft::tools
