// SPDX-License-Identifier: Apache-2.0
#include "plan/decide.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "plan/asking.h"
#include "plan/candidate.h"
#include "plan/forced.h"
#include "plan/layout.h"
#include "plan/model.h"
#include "plan/trial.h"

namespace weft::plan {
namespace {

// A candidate, made and priced.
struct Way {
  Candidate candidate;
  schedule::Schedule schedule;
  double ns = 0;
  double weight = 0;  // what it is chosen by

  bool isShared() const { return candidate.algorithm->shared; }
};
using Ways = std::vector<Way>;

// Copies by the kernel from one process to another are what the state of a machine changes most: the same
// two cores of a virtual machine made 12 GB/s and, some minutes later, 2, where loads from a peer's memory
// fell to half. What is chosen holds for both, so these must promise to take a third of the time less.
double weightOf(const Way& way, const CostParameters& costs) {
  constexpr double kFickle = 1.5;
  const bool byKernel = way.candidate.isDirect() && !costs.oneProcess && !costs.hasLinks();
  return way.ns * (byKernel ? kFickle : 1);
}

// With CMA copies it is the schedule of the candidate before it, in other terms of time. What is priced
// like that before it, in usual pieces, is in the same ones.
void addWay(const Candidate& candidate, const Call& call, const Tuning& tuning, Ways* ways) {
  const bool copies = candidate.algorithm->shared && candidate.isDirect();
  Way way{candidate, copies ? ways->back().schedule : scheduleOf(candidate, call, tuning)};
  way.ns = estimateNs(way.schedule, call, tuning.costs, copies ? Reach::Cma : Reach::Mapped);
  way.weight = weightOf(way, tuning.costs);
  const bool isKnown = candidate.isLarge() && !ways->empty() && ways->back().ns == way.ns &&
                       ways->back().candidate.algorithm == candidate.algorithm;
  if (!isKnown) ways->push_back(std::move(way));
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

bool isWished(const Way& way, const Forced& forced) {
  return way.candidate.algorithm->name == forced.shared;
}

// Null if there is none such.
template <class Predicate>
const Way* cheapest(const Ways& ways, Predicate&& isMeant) {
  const Way* best = nullptr;
  for (const Way& way : ways)
    if (isMeant(way) && (best == nullptr || way.weight < best->weight)) best = &way;
  return best;
}

// For any buffers.
bool isForAny(const Way& way) { return !way.isShared() || way.candidate.isDirect(); }

const Way* cheapestForAny(const Ways& ways, const Forced& forced) {
  return cheapest(ways, [&](const Way& way) {
    if (forced.copies) return way.isShared() && way.candidate.isDirect() && isWished(way, forced);
    return isForAny(way) &&
           (forced.ways.empty() || std::ranges::count(forced.ways, way.candidate) > 0);
  });
}

// A rooted call whose messages ranks send ahead, without waiting for anybody.
bool fitsRing(const Call& call) {
  return schedule::isRooted(call.collective) &&
         call.count * reduce::sizeOf(call.type) <= transport::kMostRingBytes;
}

const Way* cheapestShared(const Ways& ways, const Forced& forced, const Call& call) {
  if (!forced.ways.empty() || (fitsRing(call) && !forced.isWish())) return nullptr;
  return cheapest(ways, [&](const Way& way) {
    return way.isShared() && !way.candidate.isDirect() &&
           (!forced.isWish() || isWished(way, forced));
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

// Null if there is none such.
const Way* wayOf(const Ways& ways, const Candidate& candidate) {
  const auto way = std::ranges::find(ways, candidate, &Way::candidate);
  return way == ways.end() ? nullptr : &*way;
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
          way.isShared() && !way.candidate.isDirect() && !tuning.sharesAll};
}

std::string_view reasonFor(const Forced& forced, const Call& call, const Tuning& tuning) {
  if (!forced.text.empty()) return forced.isKnob ? "WEFT_ALGO" : "the call's algorithm";
  const std::string_view knob = narrowingKnob(call, tuning);
  return knob.empty() ? "the model" : knob;
}

// Of roots that are many calls ahead of the others, as they are where they share cores with them, or where
// messages fit into a ring, a call's own time says nothing.
bool isTimed(const Call& call, const Tuning& tuning) {
  return !schedule::isRooted(call.collective) ||
         (tuning.ranks <= tuning.costs.cores && !fitsRing(call));
}

// Calls are tried where their times come from one clock, and where each form gives the same bits.
bool mayTry(const Forced& forced, const Call& call, const Tuning& tuning) {
  return tuning.tries && tuning.ranks > 1 && isTimed(call, tuning) &&
         (tuning.shares || tuning.sharesAll) && !tuning.costs.between && !isCrowdedHost(tuning) &&
         forced.text.empty() && narrowingKnob(call, tuning).empty() && call.counts.empty() &&
         call.op != reduce::RedOp::Epilogue;
}

// The calibration of stores is off by less than this: one that was made while cores shared no cache let
// all from some 100 KiB on go past it.
bool storesMayFlip(const schedule::Schedule& schedule, const Call& call, const Tuning& tuning) {
  constexpr double kBelow = 8, kAbove = 64;
  const auto bytes = static_cast<double>(ByteLayout(schedule, call, {}).bufferBytes());
  const auto least = static_cast<double>(streamMin(tuning.ranks, tuning.costs));
  return bytes * kBelow >= least && bytes <= least * kAbove;
}

// What may run in the place of `chosen` and is not found far dearer, the cheapest first. A calibration may
// be of another state of the machine: one was seen that made copies by the kernel five times too dear.
template <class Predicate>
std::vector<const Way*> nearTo(const Way& chosen, const Ways& ways, Predicate&& mayRun) {
  constexpr double kNear = 8;
  std::vector<const Way*> near;
  for (const Way& way : ways)
    if (&way != &chosen && mayRun(way) && way.ns < kNear * chosen.ns) near.push_back(&way);
  std::ranges::stable_sort(near, {}, &Way::ns);
  return near;
}

// What the model has chosen for a call, and what it knows of asking whether all buffers are shared.
struct Choice {
  const Way* any = nullptr;
  const Way* shared = nullptr;  // the best there is; null: there is none
  bool asks = false;            // the model would

  Candidate asked(bool whether) const { return whether ? shared->candidate : Candidate(); }
  // To ask in vain costs more than trials see where a root that is calls ahead stops for it.
  bool mayTryToAsk(const Tuning& tuning) const {
    constexpr double kMayGain = 2, kLong = 32;
    if (shared == nullptr || shared->ns >= kMayGain * any->ns) return false;
    return !schedule::isRooted(shared->schedule.collective) ||
           any->ns > kLong * roundNs(tuning.ranks, tuning.costs);
  }
};

// The model's first, then as many of the others as there is room for, and last what is always tried.
std::vector<Form> inOrder(Form first, std::vector<Form> near, const std::vector<Form>& last) {
  near.resize(std::min(near.size(), Trial::kMost - 1 - last.size()));
  std::vector<Form> forms{first};
  forms.insert(forms.end(), near.begin(), near.end());
  forms.insert(forms.end(), last.begin(), last.end());
  return forms.size() > 1 ? forms : std::vector<Form>();
}

// Forms for any buffers, the other way to store results, and to ask, or not to. Where all memory is
// shared, `chosen` may be one for shared buffers.
std::vector<Form> anyForms(const Ways& ways, const Way& chosen, const Choice& choice,
                           const Call& call, const Tuning& tuning) {
  const Candidate asked = choice.asked(choice.asks && !tuning.sharesAll);
  std::vector<Form> near, last;
  const auto mayRun = [&](const Way& way) { return tuning.sharesAll || isForAny(way); };
  for (const Way* way : nearTo(chosen, ways, mayRun)) near.push_back({way->candidate, asked});
  if (!tuning.sharesAll && choice.mayTryToAsk(tuning))
    last.push_back({chosen.candidate, choice.asked(!choice.asks)});
  if (storesMayFlip(chosen.schedule, call, tuning)) last.push_back({chosen.candidate, asked, true});
  return inOrder({chosen.candidate, asked}, std::move(near), last);
}

// Forms for shared buffers, each with both ways to store results, and not to ask.
std::vector<Form> sharedForms(const Ways& ways, const Choice& choice, const Call& call,
                              const Tuning& tuning) {
  if (choice.shared == nullptr || tuning.sharesAll) return {};
  const Candidate any = choice.any->candidate;
  std::vector<Form> near;
  const auto add = [&](const Way& way, bool flips) { near.push_back({any, way.candidate, flips}); };
  const auto isShared = [](const Way& way) { return !isForAny(way); };
  const auto others = nearTo(*choice.shared, ways, isShared);
  for (const Way* way : others) add(*way, false);
  if (storesMayFlip(choice.shared->schedule, call, tuning)) add(*choice.shared, true);
  for (const Way* way : others)
    if (storesMayFlip(way->schedule, call, tuning)) add(*way, true);
  return inOrder({any, choice.asked(choice.asks)}, std::move(near),
                 {{any, choice.asked(!choice.asks)}});
}

}  // namespace

std::string nameOf(const Form& form, const Call& call, const Tuning& tuning) {
  return nameOf(form.any, call, tuning) +
         (form.asks() ? text(" or ", form.shared.algorithm->name) : "") +
         (form.flipsStores ? " with other stores" : "");
}

Status decide(const Call& call, const Tuning& tuning, Decision* out, const Form* tried) {
  Forced forced;
  WEFT_TRY(readForced(call, tuning, &forced));
  const Ways ways = waysOf(forced, call, tuning);
  const Way* any = cheapestForAny(ways, forced);
  if (any == nullptr && forced.copies && !tuning.sharesAll)
    WEFT_TRY(checkDirect(forced.text, tuning));
  if (any == nullptr) any = cheapest(ways, isForAny);
  if (any == nullptr)
    return Status::error(Code::InvalidUsage, "no algorithm for ", collectiveName(call.collective),
                         " is automatic here; fix: force one of ", algorithmNames(listOf(call)));
  const Way* const bestShared = cheapestShared(ways, forced, call);
  const bool gains =
      bestShared != nullptr && (forced.isWish() || sharingGains(bestShared->ns, any->ns, tuning));
  const Way* shared = gains ? bestShared : nullptr;
  *out = {};
  if (mayTry(forced, call, tuning)) {
    const Choice choice{any, bestShared, gains};
    const bool onlyShared = gains && tuning.sharesAll;
    const Way& chosen = onlyShared ? *shared : *any;
    out->forms.any = anyForms(ways, chosen, choice, call, tuning);
    out->forms.shared = sharedForms(ways, choice, call, tuning);
    out->forms.anyNs = chosen.ns;
    if (bestShared != nullptr) out->forms.sharedNs = bestShared->ns;
    out->forms.asked = choice.asked(!tuning.sharesAll && (gains || choice.mayTryToAsk(tuning)));
  }
  if (const Way* way = tried == nullptr ? nullptr : wayOf(ways, tried->any)) {
    shared = tried->asks() ? wayOf(ways, tried->shared) : isForAny(*way) ? nullptr : way;
    if (isForAny(*way)) any = way;
    out->flipsStores = tried->flipsStores;
  }
  out->schedule = any->schedule;
  out->copies = any->isShared();
  out->why = reasonFor(forced, call, tuning);
  if (shared != nullptr) out->shared = shared->schedule;
  out->expected = expectedOf(*any, nullptr, tuning);
  out->expectedShared = expectedOf(*any, shared, tuning);
  for (const Way& way : ways) out->estimates.push_back(estimateOf(way, call, tuning));
  return {};
}

}  // namespace weft::plan
