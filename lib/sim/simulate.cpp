// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sim/calls.h"
#include "sim/job.h"
#include "sim/program.h"
#include "sim/sharing.h"
#include "sim/symmetry.h"
#include "sim/timeline.h"

namespace weft::sim {
namespace {

// What the ranks of a workload do, and which of them are looked at.
struct Prepared {
  Symmetry symmetry, likeness;
  std::vector<Calls::Kind> kinds;
  std::vector<Role> roles;
  std::vector<std::uint32_t> calls;   // kinds
  std::vector<std::uint32_t> roleOf;  // by rank that is simulated
  std::uint32_t streams = 1;
};

// All calls of a workload are of one machine.
double handOverNsOf(const Prepared& prepared) {
  return prepared.kinds.empty() ? 0 : prepared.kinds[0].job->costs->machine.handOverNs;
}

class Simulation {
 public:
  Simulation(const Setting& setting, const Prepared& prepared)
      : network_(*setting.network),
        symmetry_(prepared.symmetry),
        sharing_(Cores::ratesOf(setting, prepared.streams)),
        cores_(setting, symmetry_, clock_, sharing_, symmetry_.classes(), prepared.streams,
               handOverNsOf(prepared)),
        calls_(setting, symmetry_, prepared.likeness, prepared.kinds, prepared.calls, clock_,
               sharing_, cores_),
        timeline_(setting, prepared.roles, prepared.roleOf, cores_, clock_, calls_) {}

  Status run() {
    timeline_.begin();
    timeline_.goOn();
    sharing_.settle(clock_.now());
    while (true) {
      const Time next = std::min(clock_.next(), sharing_.nextEnd());
      if (next == kNever) break;
      clock_.set(next);
      handleAll();
      sharing_.settle(clock_.now());
    }
    return timeline_.checkThrough();
  }

  void report(Result* result) const {
    Time last = 0;
    result->phases = timeline_.phases();
    for (std::uint32_t r = 0; r < result->phases.size(); ++r)
      for (const Interval& phase : result->phases[r]) {
        if (phase.end <= last) continue;
        last = phase.end;
        result->slowest = r;
      }
    result->ns = nsOf(last);
    result->simulated = static_cast<std::uint32_t>(result->phases.size());
    result->events = clock_.posted();
    result->messages = calls_.messages() * symmetry_.shifts();
    for (std::uint32_t r = 0; r < network_.resources(); ++r) {
      const double could = network_.rateOf(r) * result->ns;
      if (sharing_.carried(r) > 0 && could > 0)
        result->loads.push_back({r, sharing_.carried(r), sharing_.carried(r) / could});
    }
    std::ranges::stable_sort(result->loads, std::greater(), &Load::share);
  }

 private:
  // All that happens now, and what follows from it at once.
  void handleAll() {
    do {
      for (const std::uint64_t cookie : sharing_.finish(clock_.now())) handleEnd(cookie);
      while (clock_.next() == clock_.now()) handle(clock_.take());
    } while (timeline_.goOn() || clock_.next() == clock_.now());
  }

  void handleEnd(std::uint64_t cookie) {
    const auto what = static_cast<std::uint32_t>(cookie);
    if ((cookie & Cores::kCookie) != 0)
      timeline_.worked(what);
    else
      calls_.left(what);
  }

  void handle(const Event& event) {
    if (event.kind == Event::Kind::Polled) cores_.polled(event.what);
    if (event.kind == Event::Kind::Worked) timeline_.worked(event.what);
    if (event.kind == Event::Kind::Wake) calls_.wake(event.what);
    if (event.kind == Event::Kind::Arrival) calls_.arrive(event.what);
  }

  const Network& network_;
  const Symmetry& symmetry_;
  Clock clock_;
  Sharing sharing_;
  Cores cores_;
  Calls calls_;
  Timeline timeline_;
};

Unfolded whyUnfolded(const Setting& setting) {
  if (!setting.folds) return Unfolded::NotAsked;
  if (setting.observe) return Unfolded::Observed;
  if (setting.coresOfNode != 0) return Unfolded::Cores;
  const bool differ = !setting.stragglers.empty() || setting.jitter.sigma > 0;
  return differ ? Unfolded::Different : Unfolded::No;
}

std::uint32_t roleOf(const Workload& workload, std::uint32_t rank) {
  return workload.roleOf ? workload.roleOf(rank) : 0;
}

Status checkRoles(const Workload& workload, std::uint32_t ranks) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    if (roleOf(workload, rank) >= workload.roles.size())
      return Status::error(Code::InternalError, "rank ", rank, " has role ", roleOf(workload, rank),
                           ", which is not there; fix: report it as a bug, with the command");
  return {};
}

bool rolesFollow(const Workload& workload, const Symmetry& symmetry) {
  for (std::uint32_t one = 0; workload.roleOf && one < symmetry.classes(); ++one)
    for (std::uint32_t shift = 0; shift < symmetry.shifts(); ++shift)
      if (roleOf(workload, symmetry.moved(one, shift)) != roleOf(workload, one)) return false;
  return true;
}

Status callsFollow(const Workload& workload, const Setting& setting, const Symmetry& symmetry,
                   Plans* plans, bool* follows) {
  *follows = rolesFollow(workload, symmetry);
  for (const Job& job : workload.calls) {
    if (!*follows) break;
    WEFT_TRY(followsSymmetry(job, setting, symmetry, plans, follows));
  }
  return {};
}

// The most shifts under which this job is the same, as it is or with its last segment spread.
Status findSymmetry(const Workload& workload, Setting* setting, Symmetry* symmetry, Plans* plans,
                    Unfolded* why) {
  const Network& network = *setting->network;
  *why = whyUnfolded(*setting);
  const std::vector<Symmetry> candidates = Symmetry::of(network);
  if (*why == Unfolded::No && candidates.empty()) *why = Unfolded::Different;
  if (*why != Unfolded::No) return {};
  const bool mayEven = std::exchange(setting->evens, false);
  for (const bool evens : {false, true}) {
    if (evens && !mayEven) break;
    setting->evens = evens;
    for (const Symmetry& candidate : candidates) {
      bool follows = false;
      WEFT_TRY(callsFollow(workload, *setting, candidate, plans, &follows));
      if (!follows) continue;
      *symmetry = candidate;
      return {};
    }
  }
  setting->evens = false;
  *why = Unfolded::Plans;
  return {};
}

// Ranks that are not folded may run the same program all the same.
Status findLikeness(const Workload& workload, const Setting& setting, Symmetry* likeness,
                    Plans* plans) {
  if (setting.network->ranks() <= setting.ownPrograms) return {};
  for (const Symmetry& candidate : Symmetry::of(*setting.network)) {
    bool follows = true;
    for (std::size_t i = 0; follows && i < workload.calls.size(); ++i)
      WEFT_TRY(followsSymmetry(workload.calls[i], setting, candidate, plans, &follows));
    if (!follows) continue;
    *likeness = candidate;
    break;
  }
  return {};
}

Status prepare(const Workload& workload, Setting* setting, Prepared* out, Unfolded* why) {
  Plans plans;
  WEFT_TRY(findSymmetry(workload, setting, &out->symmetry, &plans, why));
  out->likeness = out->symmetry;
  if (!out->symmetry.folds() && *why != Unfolded::Plans)
    WEFT_TRY(findLikeness(workload, *setting, &out->likeness, &plans));
  out->streams = streamsOf(workload);
  WEFT_TRY(makeRoles(workload, &out->roles, &out->calls));
  for (const Job& job : workload.calls) {
    out->kinds.push_back({&job, {}});
    WEFT_TRY(makePrograms(job, *setting, out->likeness, plans, &out->kinds.back().programs));
  }
  for (std::uint32_t rank = 0; rank < out->symmetry.classes(); ++rank)
    out->roleOf.push_back(roleOf(workload, rank));
  return {};
}

// Where some ranks are joined by nothing, the plans must send nothing between them.
Status checkWays(const Network& network, const std::vector<Calls::Kind>& kinds) {
  const Status connected = network.checkConnected();
  if (connected.ok()) return {};
  Route route;
  for (const Calls::Kind& kind : kinds)
    for (std::uint32_t rank = 0; rank < kind.programs.size(); ++rank)
      for (const Step& step : kind.programs[rank].steps)
        if (step.kind == Step::Kind::Message && !network.findRoute(rank, step.peer, &route))
          return connected;
  return {};
}

}  // namespace

Status simulate(const Workload& workload, const Setting& setting, Result* result) {
  *result = {};
  Setting settled = setting;
  WEFT_TRY(checkRoles(workload, setting.network->ranks()));
  Prepared prepared{
      Symmetry::none(*setting.network), Symmetry::none(*setting.network), {}, {}, {}, {}};
  WEFT_TRY(prepare(workload, &settled, &prepared, &result->unfolded));
  WEFT_TRY(checkWays(*setting.network, prepared.kinds));
  Simulation simulation(settled, prepared);
  result->evened = settled.evens;
  WEFT_TRY(simulation.run());
  simulation.report(result);
  return {};
}

Status simulate(const Job& job, const Setting& setting, Result* result) {
  Workload workload;
  workload.calls.push_back(job);
  workload.roles.push_back({{.name = "call", .call = 0}});
  return simulate(workload, setting, result);
}

}  // namespace weft::sim
