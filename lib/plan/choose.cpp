// SPDX-License-Identifier: Apache-2.0
#include "plan/choose.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "schedule/generators.h"
#include "schedule/nodes.h"
#include "schedule/registry.h"
#include "schedule/transforms.h"

namespace weft {
namespace {

enum class Landing { Choose, Staged, Direct };

std::uint64_t longestBlock(const Call& call) {
  std::uint64_t count = call.counts.empty() ? call.count : 0;
  for (const std::size_t n : call.counts) count = std::max<std::uint64_t>(count, n);
  return count * sizeOf(call.type);
}

bool hasLevels(const Tuning& tuning) {
  if (tuning.nodes.empty()) return false;
  const Nodes nodes(tuning.nodes);
  return nodes.count() > 1 && nodes.rails() > 1;
}

// Ranks of each node, if all have equally many and stand in order; else 0.
std::uint32_t evenCards(const Tuning& tuning) {
  if (!hasLevels(tuning)) return 0;
  const Nodes nodes(tuning.nodes);
  const bool even = Nodes::even(nodes.rails(), nodes.count()) == tuning.nodes;
  return even ? nodes.rails() : 0;
}

// A kernel in an all-reduce is called once for each element, by the rank whose block it is in: such
// a call is a reduce-scatter and an all-gather, and named by them.
bool isStep(const Call& call) {
  return call.collective == Collective::AllReduce && call.op == RedOp::Kernel;
}

// Where its algorithms are listed.
Collective listOf(const Call& call) {
  return isStep(call) ? Collective::ReduceScatter : call.collective;
}

// On one host, the default algorithms are those that add in rank order, so that the choice does not
// change a sum.
std::vector<std::string_view> flatNames(Collective collective, std::uint32_t ranks) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
      return {"one-shot", "mesh"};
    case Collective::Broadcast:
      if (ranks <= 2) return {"direct"};
      return {"direct", "scatter-all-gather"};
    case Collective::ReduceScatter:
    case Collective::AllGather:
      return {"mesh"};
    case Collective::Barrier:
      return {"direct", "dissemination"};
    default:
      return {"direct"};
  }
}

// Between hosts there are those that spare the links between them.
std::vector<std::string_view> defaultNames(const Call& call, const Tuning& tuning) {
  std::vector<std::string_view> names = flatNames(listOf(call), tuning.ranks);
  if (!tuning.ground.between || !hasLevels(tuning) || call.reproducible) return names;
  for (const Algorithm& a : algorithms()) {
    const bool fits = a.levels == Levels::Two || (a.levels == Levels::TwoEven && evenCards(tuning));
    if (a.collective == listOf(call) && fits) names.push_back(a.name);
  }
  return names;
}

constexpr std::string_view kShared = "shared", kSharedDirect = "shared:direct";

bool wishesShared(std::string_view forced) { return forced == kShared || forced == kSharedDirect; }

// The knob speaks to all calls of a job: where only other collectives have that algorithm, it says
// nothing.
bool concerns(std::string_view knob, Collective collective) {
  const std::string_view name = knob.substr(0, knob.find(':'));
  return findAlgorithm(collective, name) != nullptr ||
         std::ranges::none_of(algorithms(), [&](const Algorithm& a) { return a.name == name; });
}

std::string_view forcedName(const Call& call, const Tuning& tuning) {
  if (!call.algorithm.empty() || !concerns(tuning.algorithm, listOf(call))) return call.algorithm;
  return tuning.algorithm;
}

// Splits "mesh:direct".
Status parseForced(std::string_view text, std::string_view* name, Landing* landing) {
  const std::size_t colon = text.find(':');
  *name = text.substr(0, colon);
  if (colon == std::string_view::npos) return {};
  const std::string_view where = text.substr(colon + 1);
  if (where != "staged" && where != "direct")
    return Status::error(Code::InvalidUsage,
                         weft::text("algorithm '", text, "': unknown landing '", where,
                                    "'; fix: use ':staged', ':direct' or none"));
  *landing = where == "direct" ? Landing::Direct : Landing::Staged;
  return {};
}

// Copies gain from landing in place. A reduction's second half goes through the cache either way,
// and of a broadcast one rank alone would do the work.
bool mayLandDirectly(const Call& call, const Tuning& tuning) {
  return tuning.direct && !isReduction(call.collective) && call.collective != Collective::Broadcast;
}

Status checkFits(const Algorithm& algorithm, const Call& call, const Tuning& tuning) {
  if (call.reproducible && algorithm.order == SumOrder::Algorithm)
    return Status::error(Code::InvalidUsage,
                         text("algorithm '", algorithm.name,
                              "' does not add in rank order, which reproducible asks for; "
                              "fix: choose one-shot or mesh"));
  if (algorithm.levels == Levels::Two && !hasLevels(tuning))
    return Status::error(Code::InvalidUsage,
                         text("algorithm '", algorithm.name,
                              "' needs several nodes, one of several ranks; fix: choose another"));
  if (algorithm.levels == Levels::TwoEven && evenCards(tuning) == 0)
    return Status::error(
        Code::InvalidUsage,
        text("algorithm '", algorithm.name,
             "' needs several nodes with equally many ranks, in order; fix: choose two-level"));
  return {};
}

// An algorithm with its landing.
struct Candidate {
  const Algorithm* algorithm = nullptr;
  bool direct = false;
};

Schedule cheapestBarrier(const Tuning& tuning) {
  Call call;
  call.collective = Collective::Barrier;
  Schedule direct = directBarrier(tuning.ranks), rounds = disseminationBarrier(tuning.ranks);
  return estimateNs(direct, call, tuning.ground) <= estimateNs(rounds, call, tuning.ground)
             ? direct
             : rounds;
}

Schedule generate(const Algorithm& algorithm, const Call& call, const Tuning& tuning) {
  const Shape shape{.ranks = tuning.ranks,
                    .root = static_cast<std::uint32_t>(call.root),
                    .cards = std::max(1u, evenCards(tuning)),
                    .nodeOf = tuning.nodes};
  Schedule made = algorithm.make(shape);
  if (call.op != RedOp::Kernel) return made;
  if (call.collective == Collective::AllGather) return makeFirst(std::move(made));
  if (!isStep(call) || algorithm.shared) return made;
  const Algorithm* gather = findAlgorithm(Collective::AllGather, algorithm.name);
  return reduceScatterAllGather(text("step ", algorithm.name), made, gather->make(shape));
}

Schedule make(const Candidate& candidate, const Call& call, const Tuning& tuning) {
  Schedule schedule = generate(*candidate.algorithm, call, tuning);
  if (candidate.algorithm->shared) return schedule;
  if (call.op == RedOp::PreMulSum && isReduction(call.collective))
    schedule = prescale(std::move(schedule));
  schedule = candidate.direct ? grantOut(std::move(schedule)) : stageOut(std::move(schedule));
  if (isRooted(call.collective))
    schedule = withAgreement(std::move(schedule), cheapestBarrier(tuning));
  return schedule;
}

double priceOf(const Candidate& candidate, const Call& call, const Tuning& tuning) {
  return estimateNs(make(candidate, call, tuning), call, tuning.ground);
}

// Both landings of an algorithm, where the call may take both and no knob decides.
std::vector<Candidate> landingsOf(const Algorithm* algorithm, const Call& call,
                                  const Tuning& tuning) {
  if (!mayLandDirectly(call, tuning)) return {{algorithm, false}};
  if (tuning.directMin) return {{algorithm, longestBlock(call) >= *tuning.directMin}};
  return {{algorithm, false}, {algorithm, true}};
}

// Of two default algorithms WEFT_ONE_SHOT_MAX asks for the first up to its limit.
bool isAllowed(std::size_t index, std::size_t names, const Call& call, const Tuning& tuning) {
  if (!tuning.oneShotMax || names == 1 || longestBlock(call) == 0) return true;
  return (index == 0) == (longestBlock(call) <= *tuning.oneShotMax);
}

std::vector<Candidate> candidatesOf(const Call& call, const Tuning& tuning) {
  const std::vector<std::string_view> names = defaultNames(call, tuning);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!isAllowed(i, names.size(), call, tuning)) continue;
    const Algorithm* algorithm = findAlgorithm(listOf(call), names[i]);
    std::ranges::copy(landingsOf(algorithm, call, tuning), std::back_inserter(candidates));
  }
  return candidates;
}

Candidate cheapest(const std::vector<Candidate>& candidates, const Call& call,
                   const Tuning& tuning) {
  if (candidates.size() == 1) return candidates[0];
  return *std::ranges::min_element(candidates, {},
                                   [&](const Candidate& c) { return priceOf(c, call, tuning); });
}

const Algorithm* sharedAlgorithm(const Call& call, const Tuning& tuning) {
  const bool can =
      tuning.ranks > 1 && (tuning.shares || tuning.sharesAll) && call.op != RedOp::PreMulSum;
  return can ? findAlgorithm(call.collective, kShared) : nullptr;
}

// Where only some memory is shared, ranks must ask each other first, which is lost if it is not: so
// calls must gain a larger part of their time than they may lose.
bool sharingGains(const Algorithm* shared, const Call& call, const Tuning& tuning) {
  const double risk = tuning.sharesAll ? 0 : roundNs(tuning.ranks, tuning.ground);
  const Candidate other = cheapest(candidatesOf(call, tuning), call, tuning);
  const double sharedNs = priceOf({shared}, call, tuning), otherNs = priceOf(other, call, tuning);
  return otherNs / sharedNs > (otherNs + risk) / otherNs;
}

// Kernel copies of shared buffers: where blocks may land directly, that is better.
bool mayCopyShared(const Call& call, const Tuning& tuning) {
  return tuning.direct && !tuning.sharesAll && !mayLandDirectly(call, tuning) &&
         call.op != RedOp::Kernel && sharedAlgorithm(call, tuning) != nullptr;
}

double sharedByKernelNs(const Call& call, const Tuning& tuning) {
  const Candidate shared{sharedAlgorithm(call, tuning)};
  return estimateNs(make(shared, call, tuning), call, tuning.ground, Reach::Kernel);
}

Status checkDirect(std::string_view forced, const Tuning& tuning) {
  if (tuning.direct) return {};
  return Status::error(Code::InvalidUsage,
                       text("algorithm '", forced,
                            "': this communicator cannot write into its peers' buffers; "
                            "fix: use ':staged'"));
}

// What `forced` names.
Status forcedCandidate(std::string_view forced, const Call& call, const Tuning& tuning,
                       Candidate* out) {
  std::string_view name;
  Landing landing = Landing::Choose;
  WEFT_TRY(parseForced(forced, &name, &landing));
  const Algorithm* algorithm = findAlgorithm(listOf(call), name);
  if (algorithm == nullptr)
    return Status::error(
        Code::InvalidUsage,
        text("unknown algorithm '", name, "' for ", collectiveName(call.collective),
             "; fix: use one of ", algorithmNames(listOf(call))));
  if (algorithm->shared)
    return Status::error(Code::InvalidUsage, text("algorithm '", forced, "': '", name,
                                                  "' lands nowhere; fix: name it alone"));
  WEFT_TRY(checkFits(*algorithm, call, tuning));
  if (landing == Landing::Direct) WEFT_TRY(checkDirect(forced, tuning));
  *out = landing == Landing::Choose ? cheapest(landingsOf(algorithm, call, tuning), call, tuning)
                                    : Candidate{algorithm, landing == Landing::Direct};
  return {};
}

std::string nameOf(const Candidate& candidate, const Call& call, const Tuning& tuning) {
  std::string name(candidate.algorithm->name);
  if (candidate.algorithm->shared || !mayLandDirectly(call, tuning)) return name;
  return name + (candidate.direct ? ":direct" : ":staged");
}

}  // namespace

std::string algorithmNames(Collective collective) {
  std::string names;
  for (const Algorithm& a : algorithms()) {
    if (a.collective == collective) names += text(names.empty() ? "" : ",", a.name);
  }
  return names;
}

std::optional<Schedule> chooseShared(const Call& call, const Tuning& tuning) {
  const std::string_view wanted = forcedName(call, tuning);
  const Algorithm* algorithm = sharedAlgorithm(call, tuning);
  if (algorithm == nullptr) return {};
  const bool want = wanted.empty() ? sharingGains(algorithm, call, tuning) : wishesShared(wanted);
  if (!want) return {};
  return make({algorithm}, call, tuning);
}

bool kernelCopiesGain(const Call& call, const Tuning& tuning) {
  const std::string_view wanted = forcedName(call, tuning);
  if (!mayCopyShared(call, tuning)) return false;
  if (wanted == kSharedDirect) return true;
  const Candidate other = cheapest(candidatesOf(call, tuning), call, tuning);
  return sharedByKernelNs(call, tuning) < priceOf(other, call, tuning);
}

// 'shared' says what to do if all buffers are shared; this is what to do if not.
Status choose(const Call& call, const Tuning& tuning, Schedule* out) {
  const std::string_view forced = forcedName(call, tuning);
  Candidate candidate;
  if (forced == kSharedDirect) WEFT_TRY(checkDirect(forced, tuning));
  if (forced.empty() || wishesShared(forced))
    candidate = cheapest(candidatesOf(call, tuning), call, tuning);
  else
    WEFT_TRY(forcedCandidate(forced, call, tuning, &candidate));
  *out = make(candidate, call, tuning);
  return {};
}

std::vector<Form> formsOf(const Call& call, const Tuning& tuning) {
  std::vector<Candidate> candidates = candidatesOf(call, tuning);
  if (const Algorithm* shared = sharedAlgorithm(call, tuning)) candidates.push_back({shared});
  std::vector<Form> forms;
  for (const Candidate& candidate : candidates)
    forms.push_back({nameOf(candidate, call, tuning), priceOf(candidate, call, tuning)});
  if (mayCopyShared(call, tuning))
    forms.push_back({std::string(kSharedDirect), sharedByKernelNs(call, tuning)});
  return forms;
}

std::string_view reasonFor(const Call& call, const Tuning& tuning) {
  if (!call.algorithm.empty()) return "the call's algorithm";
  if (!forcedName(call, tuning).empty()) return "WEFT_ALGO";
  const bool several = longestBlock(call) != 0 && defaultNames(call, tuning).size() > 1;
  if (tuning.oneShotMax && several) return "WEFT_ONE_SHOT_MAX";
  if (tuning.directMin && mayLandDirectly(call, tuning)) return "WEFT_DIRECT_MIN";
  return "the model";
}

}  // namespace weft
