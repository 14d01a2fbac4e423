// SPDX-License-Identifier: Apache-2.0
#include "plan/candidate.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "plan/arrivals.h"
#include "schedule/algorithms/generators.h"
#include "schedule/transforms.h"

namespace weft::plan {
namespace {

std::uint64_t longestBlock(const Call& call) {
  std::uint64_t count = call.counts.empty() ? call.count : 0;
  for (const std::size_t n : call.counts) count = std::max<std::uint64_t>(count, n);
  return count * reduce::sizeOf(call.type);
}

// Copies gain from direct puts. A reduction's second half goes through the cache either way, and of
// a broadcast one rank alone would do the work.
bool mayLandDirectly(const Call& call, const Tuning& tuning) {
  return tuning.direct && !schedule::isReduction(call.collective) &&
         call.collective != schedule::Collective::Broadcast;
}

// CMA copies of shared buffers: where blocks may be put directly, that is better, and to take all takes twice
// as long as halves both ways.
bool mayCopyShared(const schedule::Algorithm& algorithm, const Call& call, const Tuning& tuning) {
  return tuning.direct && !tuning.sharesAll && !algorithm.pulls && !mayLandDirectly(call, tuning) &&
         call.op != reduce::RedOp::Epilogue;
}

// Ranks that share a core have more in flight than its cache holds, and between hosts pieces are large.
bool mayBeLarge(const Tuning& tuning) {
  return !tuning.costs.hasLinks() && tuning.ranks > 1 && tuning.ranks <= tuning.costs.cores;
}

// May the model choose this algorithm, if it fits? Two levels are for links between hosts and NUMA
// nodes, and an order of additions of an algorithm's own is, but for a crowd, for those between hosts.
bool isAutomatic(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  if (tuning.ranks < algorithm.automaticFrom) return false;
  if (algorithm.levels == schedule::Levels::Links) return tuning.costs.cables.has_value();
  return tuning.costs.between ||
         ((algorithm.levels == schedule::Levels::One || !tuning.costs.memoryNodes.empty()) &&
          (algorithm.order != schedule::SumOrder::Algorithm || isCrowdedHost(tuning)));
}

std::vector<const schedule::Algorithm*> fitting(const Call& call, const Tuning& tuning,
                                                bool shared) {
  const schedule::Collective list = shared ? call.collective : listOf(call);
  std::vector<const schedule::Algorithm*> found;
  for (const schedule::Algorithm& a : schedule::algorithms())
    if (a.collective == list && a.shared == shared && checkFits(a, call, tuning).ok())
      found.push_back(&a);
  return found;
}

std::vector<const schedule::Algorithm*> automaticAlgorithms(const Call& call, const Tuning& tuning,
                                                            bool shared = false) {
  std::vector<const schedule::Algorithm*> found = fitting(call, tuning, shared);
  std::erase_if(found, [&](const schedule::Algorithm* a) { return !isAutomatic(*a, tuning); });
  const auto reachesFew = [](const schedule::Algorithm* a) { return a->reachesFew(); };
  if (isCrowdedHost(tuning) && (shared || std::ranges::any_of(found, reachesFew)))
    std::erase_if(found, [&](const schedule::Algorithm* a) { return !reachesFew(a); });
  return found;
}

// WEFT_ONE_SHOT_MAX asks for the one-shot algorithm, the first of several, up to its limit, and for
// the others beyond it.
bool limitsOneShot(const Call& call, const Tuning& tuning,
                   const std::vector<const schedule::Algorithm*>& several) {
  return tuning.oneShotMax && several.size() > 1 && several[0]->name == "one-shot" &&
         longestBlock(call) != 0;
}

void append(std::vector<Candidate>* all, const std::vector<Candidate>& more) {
  all->insert(all->end(), more.begin(), more.end());
}

// Those that stage, each in usual pieces first, and the direct one.
std::vector<Candidate> protocols(const schedule::Algorithm* algorithm, const Tuning& tuning,
                                 bool publishes, bool direct) {
  const bool large = mayBeLarge(tuning);
  std::vector<Candidate> all{{algorithm, Protocol::Staged}};
  if (large) all.push_back({algorithm, Protocol::StagedLarge});
  if (publishes) all.push_back({algorithm, Protocol::Published});
  if (publishes && large) all.push_back({algorithm, Protocol::PublishedLarge});
  if (direct) all.push_back({algorithm, Protocol::Direct});
  return all;
}

// Those of an algorithm on shared buffers, which stages nothing.
std::vector<Candidate> sharedProtocols(const schedule::Algorithm* algorithm, const Call& call,
                                       const Tuning& tuning) {
  std::vector<Candidate> all{{algorithm, Protocol::Staged}};
  if (mayCopyShared(*algorithm, call, tuning)) all.push_back({algorithm, Protocol::Direct});
  return all;
}

Status refuse(const schedule::Algorithm& algorithm, std::string_view why) {
  return Status::error(Code::InvalidUsage, "algorithm '", algorithm.name, "' ", why);
}

schedule::Schedule generate(const schedule::Algorithm& algorithm, const Call& call,
                            const Tuning& tuning) {
  if (isImported(algorithm, tuning)) return tuning.imported->schedule;
  const schedule::Shape shape = shapeOf(tuning, static_cast<std::uint32_t>(call.root));
  schedule::Schedule made = algorithm.make(shape);
  if (call.op != reduce::RedOp::Epilogue) return made;
  if (call.collective == schedule::Collective::AllGather)
    return schedule::makeFirst(std::move(made));
  if (!isStep(call) || algorithm.shared) return made;
  const schedule::Algorithm* gather =
      schedule::findAlgorithm(schedule::Collective::AllGather, algorithm.name);
  schedule::Schedule step =
      schedule::reduceScatterAllGather(algorithm.name, made, gather->make(shape));
  step.name = text("step ", algorithm.name);
  return step;
}

}  // namespace

schedule::Collective listOf(const Call& call) {
  return isStep(call) ? schedule::Collective::ReduceScatter : call.collective;
}

Status checkFits(const schedule::Algorithm& algorithm, const Call& call, const Tuning& tuning) {
  if (isImported(algorithm, tuning)) WEFT_TRY(checkImportedFits(call, tuning));
  if (algorithm.shared && (tuning.ranks == 1 || !(tuning.shares || tuning.sharesAll) ||
                           call.op == reduce::RedOp::PreMulSum))
    return refuse(algorithm, "needs shared buffers and unscaled inputs; fix: choose another");
  if (algorithm.pulls && call.op == reduce::RedOp::Epilogue)
    return refuse(algorithm, "reads inputs, not what is made of them; fix: choose another");
  if (call.reproducible && algorithm.order == schedule::SumOrder::Algorithm)
    return refuse(algorithm,
                  "does not add in rank order, which reproducible asks for; "
                  "fix: choose one-shot or mesh");
  if (algorithm.levels == schedule::Levels::Two && !hasLevels(tuning))
    return refuse(algorithm, "needs several nodes, one of several ranks; fix: choose another");
  if (algorithm.levels == schedule::Levels::TwoEven && shapeOf(tuning).localRanks == 1)
    return refuse(algorithm,
                  "needs several nodes with equally many ranks, in order; fix: choose two-level");
  if (algorithm.levels == schedule::Levels::Links && tuning.links == nullptr)
    return refuse(algorithm, "is planned for links, and these are not known; fix: choose another");
  if (algorithm.levels == schedule::Levels::Links && call.op == reduce::RedOp::Epilogue)
    return refuse(algorithm, "deals blocks in parts, which no epilogue takes; fix: choose another");
  if (isStep(call) && !algorithm.shared &&
      schedule::findAlgorithm(schedule::Collective::AllGather, algorithm.name) == nullptr)
    return refuse(algorithm,
                  "has no all-gather of its name, which a step ends with; fix: choose another");
  return checkArrivals(algorithm, tuning);
}

std::vector<Candidate> protocolsOf(const schedule::Algorithm* algorithm, const Call& call,
                                   const Tuning& tuning) {
  // For one peer it is the same as to put it there.
  const bool publishes = mayPublish(*algorithm, tuning) && tuning.ranks > 2;
  if (!mayLandDirectly(call, tuning)) return protocols(algorithm, tuning, publishes, false);
  if (!tuning.directMin) return protocols(algorithm, tuning, publishes, true);
  if (longestBlock(call) < *tuning.directMin) return protocols(algorithm, tuning, publishes, false);
  return {{algorithm, Protocol::Direct}};
}

bool mayPublish(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  return algorithm.alike && tuning.maps && tuning.ranks > 1;
}

std::vector<Candidate> candidatesOf(const Call& call, const Tuning& tuning) {
  std::vector<Candidate> all;
  for (const schedule::Algorithm* a : fitting(call, tuning, false))
    append(&all, protocols(a, tuning, mayPublish(*a, tuning), tuning.direct));
  for (const schedule::Algorithm* a : fitting(call, tuning, true))
    append(&all, sharedProtocols(a, call, tuning));
  return all;
}

std::vector<Candidate> automaticOf(const Call& call, const Tuning& tuning) {
  const std::vector<const schedule::Algorithm*> plain = automaticAlgorithms(call, tuning);
  const bool limited = limitsOneShot(call, tuning, plain);
  const bool isShort = limited && longestBlock(call) <= *tuning.oneShotMax;
  std::vector<Candidate> all;
  for (const schedule::Algorithm* a : plain)
    if (!limited || (a == plain[0]) == isShort) append(&all, protocolsOf(a, call, tuning));
  for (const schedule::Algorithm* a : automaticAlgorithms(call, tuning, true))
    append(&all, sharedProtocols(a, call, tuning));
  return all;
}

std::string_view narrowingKnob(const Call& call, const Tuning& tuning) {
  if (limitsOneShot(call, tuning, automaticAlgorithms(call, tuning))) return "WEFT_ONE_SHOT_MAX";
  return tuning.directMin && mayLandDirectly(call, tuning) ? "WEFT_DIRECT_MIN" : "";
}

std::string nameOf(const Candidate& candidate, const Call& call, const Tuning& tuning) {
  const schedule::Algorithm& algorithm = *candidate.algorithm;
  const bool isOnlyOne =
      algorithm.shared || !(mayLandDirectly(call, tuning) || mayPublish(algorithm, tuning));
  if (isOnlyOne && candidate.protocol == Protocol::Staged) return std::string(algorithm.name);
  return text(algorithm.name, ":", nameOf(candidate.protocol));
}

schedule::Schedule scheduleOf(const Candidate& candidate, const Call& call, const Tuning& tuning) {
  schedule::Schedule schedule = generate(*candidate.algorithm, call, tuning);
  if (candidate.algorithm->shared) return schedule;
  if (call.op == reduce::RedOp::PreMulSum && schedule::isReduction(call.collective))
    schedule = schedule::prescale(std::move(schedule));
  constexpr double kNoLimit = 1e15;  // bytes, but for that of staging memory
  if (candidate.isLarge() && schedule.segmentBytes <= 0) schedule.segmentBytes = kNoLimit;
  switch (candidate.protocol) {
    case Protocol::Staged:
    case Protocol::StagedLarge:
      return schedule::stageOut(std::move(schedule));
    case Protocol::Published:
    case Protocol::PublishedLarge:
      return schedule::publishOut(std::move(schedule));
    case Protocol::Direct:
      break;
  }
  return schedule::awaitClearToSend(std::move(schedule));
}

}  // namespace weft::plan
