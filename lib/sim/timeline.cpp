// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "sim/noise.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kNoPhase = ~0u;

Status wrong(const Phase& phase, const std::string& what) {
  return Status::error(Code::InternalError, "phase '", phase.name, "' ", what,
                       "; fix: report it as a bug, with the command");
}

Status checkPhases(const std::vector<Phase>& phases, std::size_t calls) {
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    for (const std::uint32_t before : phase.after)
      if (before >= i) return wrong(phase, "waits for one that does not stand before it");
    if (phase.call != Phase::kComputes && phase.call >= calls)
      return wrong(phase, text("makes call ", phase.call, ", which is not there"));
    if (!(phase.ns >= 0)) return wrong(phase, text("computes for ", phase.ns, " ns"));
  }
  return {};
}

// Calls by kind, and how many-th of it: as ranks make them.
class Numbers {
 public:
  explicit Numbers(std::vector<std::uint32_t>* calls) : calls_(*calls) {}
  std::uint32_t of(std::uint32_t kind, std::uint32_t nth) {
    const auto next = static_cast<std::uint32_t>(calls_.size());
    const auto [known, isNew] = known_.try_emplace({kind, nth}, next);
    if (isNew) calls_.push_back(kind);
    return known->second;
  }

 private:
  std::vector<std::uint32_t>& calls_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known_;
};

Role makeRole(const std::vector<Phase>& phases, Numbers* numbers) {
  Role role{&phases, {}, std::vector<std::uint32_t>(phases.size(), 0), {}};
  role.before.resize(phases.size());
  std::map<std::uint32_t, std::uint32_t> lastOfStream, made;
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    std::vector<std::uint32_t> after = phase.after;
    const auto [last, isFirst] = lastOfStream.try_emplace(phase.stream, i);
    if (!isFirst) after.push_back(std::exchange(last->second, i));
    for (const std::uint32_t before : after) role.before[before].push_back(i);
    role.waitsFor[i] = static_cast<std::uint32_t>(after.size());
    role.calls.push_back(phase.call == Phase::kComputes
                             ? Phase::kComputes
                             : numbers->of(phase.call, made[phase.call]++));
  }
  return role;
}

}  // namespace

Status makeRoles(const Workload& workload, std::vector<Role>* roles,
                 std::vector<std::uint32_t>* calls) {
  Numbers numbers(calls);
  for (const std::vector<Phase>& phases : workload.roles) {
    WEFT_TRY(checkPhases(phases, workload.calls.size()));
    roles->push_back(makeRole(phases, &numbers));
  }
  return {};
}

std::uint32_t streamsOf(const Workload& workload) {
  std::uint32_t streams = 1;
  for (const std::vector<Phase>& phases : workload.roles)
    for (const Phase& phase : phases) streams = std::max(streams, phase.stream + 1);
  return streams;
}

Timeline::Timeline(const Setting& setting, const std::vector<Role>& roles,
                   std::vector<std::uint32_t> roleOf, Cores& cores, Clock& clock, Calls& calls)
    : setting_(setting),
      roles_(roles),
      roleOf_(std::move(roleOf)),
      cores_(cores),
      clock_(clock),
      calls_(calls),
      at_(cores.workers(), kNoPhase) {
  for (const std::uint32_t role : roleOf_) {
    left_.push_back(roles_[role].waitsFor);
    times_.emplace_back(roles_[role].phases->size());
  }
}

void Timeline::begin() {
  for (std::uint32_t rank = 0; rank < left_.size(); ++rank)
    for (std::uint32_t phase = 0; phase < left_[rank].size(); ++phase)
      if (left_[rank][phase] == 0) ready_.push_back({rank, phase});
}

void Timeline::start(std::uint32_t rank, std::uint32_t phase) {
  const Phase& what = phaseOf(rank, phase);
  const std::uint32_t worker = cores_.workerOf(rank, what.stream);
  times_[rank][phase].begin = clock_.now();
  at_[worker] = phase;
  if (what.call != Phase::kComputes) {
    calls_.begin(calls_.runOf(roleOf(rank).calls[phase], rank), worker);
    return;
  }
  const double ns =
      what.ns * cores_.slownessOf(rank) * noiseOf(setting_.jitter, {rank, phase, ~0ull});
  if (timeOf(ns) == 0) return end(rank, phase);
  cores_.compute(worker, ns);
}

void Timeline::end(std::uint32_t rank, std::uint32_t phase) {
  times_[rank][phase].end = clock_.now();
  const std::uint32_t worker = cores_.workerOf(rank, phaseOf(rank, phase).stream);
  at_[worker] = kNoPhase;
  if (roleOf(rank).before[phase].empty()) cores_.pause(worker);
  for (const std::uint32_t next : roleOf(rank).before[phase])
    if (--left_[rank][next] == 0) ready_.push_back({rank, next});
}

void Timeline::worked(std::uint32_t worker) {
  const std::uint32_t rank = cores_.rankOf(worker), phase = at_[worker];
  if (phaseOf(rank, phase).call == Phase::kComputes) return end(rank, phase);
  calls_.worked(calls_.runOf(roleOf(rank).calls[phase], rank));
}

bool Timeline::goOn() {
  bool any = false;
  for (bool more = true; more; any |= more) {
    more = calls_.goOn();
    for (const std::uint32_t run : calls_.takeFinished()) {
      const std::uint32_t rank = calls_.rankOf(run);
      end(rank, at_[calls_.workerOf(run)]);
    }
    more |= !ready_.empty();
    for (const Ready& next : std::exchange(ready_, {})) start(next.rank, next.phase);
  }
  return any;
}

Status Timeline::checkThrough() const {
  for (std::uint32_t rank = 0; rank < times_.size(); ++rank)
    for (std::uint32_t phase = 0; phase < times_[rank].size(); ++phase) {
      if (times_[rank][phase].end != kNever || times_[rank][phase].begin == kNever) continue;
      const std::uint32_t call = roleOf(rank).calls[phase];
      if (call != Phase::kComputes) return calls_.whereItStands(calls_.runOf(call, rank));
    }
  return {};
}

}  // namespace weft::sim
