// SPDX-License-Identifier: Apache-2.0
#include "plan/decide.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "plan/asking.h"
#include "plan/candidate.h"
#include "plan/forced.h"
#include "plan/model.h"

namespace weft::plan {
namespace {

// A candidate, made and priced.
struct Way {
  Candidate candidate;
  schedule::Schedule schedule;
  double ns = 0;

  bool isShared() const { return candidate.algorithm->shared; }
};
using Ways = std::vector<Way>;

// With CMA copies it is the schedule of the candidate before it, in other terms of time.
void addWay(const Candidate& candidate, const Call& call, const Tuning& tuning, Ways* ways) {
  const bool copies = candidate.algorithm->shared && candidate.direct;
  Way way{candidate, copies ? ways->back().schedule : scheduleOf(candidate, call, tuning), 0};
  way.ns = estimateNs(way.schedule, call, tuning.costs, copies ? Reach::Cma : Reach::Mapped);
  ways->push_back(std::move(way));
}

// What is forced, then what else may be chosen.
Ways waysOf(const Forced& forced, const Call& call, const Tuning& tuning) {
  std::vector<Candidate> candidates = forced.ways;
  for (const Candidate& candidate : automaticOf(call, tuning))
    if (std::ranges::find(candidates, candidate) == candidates.end())
      candidates.push_back(candidate);
  Ways ways;
  for (const Candidate& candidate : candidates) addWay(candidate, call, tuning, &ways);
  return ways;
}

// Null if there is none such.
template <class Predicate>
const Way* cheapest(const Ways& ways, Predicate&& isMeant) {
  const Way* best = nullptr;
  for (const Way& way : ways)
    if (isMeant(way) && (best == nullptr || way.ns < best->ns)) best = &way;
  return best;
}

const Way* cheapestPlain(const Ways& ways, const Forced& forced) {
  return cheapest(ways, [&](const Way& way) {
    return !way.isShared() &&
           (forced.ways.empty() || std::ranges::count(forced.ways, way.candidate) > 0);
  });
}

const Way* cheapestShared(const Ways& ways, const Forced& forced) {
  if (!forced.ways.empty()) return nullptr;
  return cheapest(ways, [&](const Way& way) {
    return way.isShared() && !way.candidate.direct &&
           (!forced.isWish() || way.candidate.algorithm->name == forced.shared);
  });
}

// With shared buffers the call may also find that they are not, and run the other schedule. Of a
// rooted call each rank sees its own part only.
tune::Expected expectedOf(const Way& plain, const Way* shared, const Tuning& tuning) {
  if (tuning.costs.between || tuning.ranks > tuning.costs.cores ||
      schedule::isRooted(plain.schedule.collective))
    return {};
  if (shared == nullptr) return {plain.ns, plain.ns};
  return {shared->ns, std::max(shared->ns, plain.ns + roundNs(tuning.ranks, tuning.costs))};
}

bool copiesGain(const Ways& ways, const Way& shared, const Way& plain, const Forced& forced) {
  const Candidate copied{shared.candidate.algorithm, true};
  const auto way = std::ranges::find(ways, copied, &Way::candidate);
  return way != ways.end() && (forced.copies || way->ns < plain.ns);
}

// Where only some memory is shared, ranks must ask each other first, which is lost if it is not: so
// calls must gain a larger part of their time than they may lose, which the first ones do.
bool sharingGains(double sharedNs, double otherNs, const Tuning& tuning) {
  constexpr double kCalls = 2 * Asking::kInVain;  // that a kind of call is thought to have
  const double round = roundNs(tuning.ranks, tuning.costs);
  const double risk = tuning.sharesAll ? 0 : round * Asking::kInVain / kCalls;
  return otherNs / sharedNs > (otherNs + risk) / otherNs;
}

Estimate estimateOf(const Way& way, const Call& call, const Tuning& tuning) {
  return {nameOf(way.candidate, call, tuning), way.ns,
          way.isShared() && !way.candidate.direct && !tuning.sharesAll};
}

std::string_view reasonFor(const Forced& forced, const Call& call, const Tuning& tuning) {
  if (!forced.text.empty()) return forced.isKnob ? "WEFT_ALGO" : "the call's algorithm";
  const std::string_view knob = narrowingKnob(call, tuning);
  return knob.empty() ? "the model" : knob;
}

}  // namespace

Status decide(const Call& call, const Tuning& tuning, Decision* out) {
  Forced forced;
  WEFT_TRY(readForced(call, tuning, &forced));
  const Ways ways = waysOf(forced, call, tuning);
  const Way* plain = cheapestPlain(ways, forced);
  if (plain == nullptr)
    return Status::error(Code::InvalidUsage, "no algorithm for ", collectiveName(call.collective),
                         " is automatic here; fix: force one of ", algorithmNames(listOf(call)));
  *out = {};
  out->schedule = plain->schedule;
  out->why = reasonFor(forced, call, tuning);
  const Way* shared = cheapestShared(ways, forced);
  if (shared != nullptr && !forced.isWish() && !sharingGains(shared->ns, plain->ns, tuning))
    shared = nullptr;
  if (shared != nullptr) {
    out->shared = shared->schedule;
    out->copies = copiesGain(ways, *shared, *plain, forced);
  }
  out->expected = expectedOf(*plain, nullptr, tuning);
  out->expectedShared = expectedOf(*plain, shared, tuning);
  if (forced.copies && out->needsSchedule(tuning)) WEFT_TRY(checkDirect(forced.text, tuning));
  for (const Way& way : ways) out->estimates.push_back(estimateOf(way, call, tuning));
  return {};
}

}  // namespace weft::plan
