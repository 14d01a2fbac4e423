// SPDX-License-Identifier: Apache-2.0
#include "plan/choose.h"

#include <algorithm>

#include "base/text.h"
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

std::string_view bestName(const Call& call, const Tuning& tuning) {
  const bool small = longestBlock(call) <= tuning.oneShotMax;
  switch (call.collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
      return small ? "one-shot" : "mesh";
    case Collective::Broadcast:
      return small || tuning.ranks <= 2 ? "direct" : "scatter-all-gather";
    case Collective::ReduceScatter:
    case Collective::AllGather:
      return "mesh";
    case Collective::Barrier:
      return "dissemination";
    default:
      return "direct";
  }
}

std::uint64_t longestBuffer(const Call& call, std::uint32_t ranks) {
  const bool blocks = call.collective == Collective::AllGather ||
                      call.collective == Collective::ReduceScatter ||
                      call.collective == Collective::AllToAll;
  std::uint64_t count = call.counts.empty() ? call.count * (blocks ? ranks : 1) : 0;
  for (const std::size_t n : call.counts) count += n;
  return count * sizeOf(call.type);
}

constexpr std::string_view kShared = "shared";

std::string_view forcedName(const Call& call, const Tuning& tuning) {
  return call.algorithm.empty() ? std::string_view(tuning.algorithm) : call.algorithm;
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
bool landsDirectly(const Call& call, const Tuning& tuning, Landing wanted) {
  if (wanted != Landing::Choose) return wanted == Landing::Direct;
  const bool gains = !isReduction(call.collective) && call.collective != Collective::Broadcast;
  const std::uint64_t block = longestBlock(call);
  return tuning.direct && gains && block >= tuning.directMin && block <= tuning.directMax;
}

Status checkFits(const Algorithm& algorithm, const Call& call, const Tuning& tuning) {
  if (call.reproducible && algorithm.order == SumOrder::Algorithm)
    return Status::error(Code::InvalidUsage,
                         text("algorithm '", algorithm.name,
                              "' does not add in rank order, which reproducible asks for; "
                              "fix: choose one-shot or mesh"));
  if (algorithm.twoLevel && (tuning.cards <= 1 || tuning.cards >= tuning.ranks))
    return Status::error(
        Code::InvalidUsage,
        text("algorithm '", algorithm.name, "' needs several nodes of several ranks; there are ",
             tuning.ranks, " ranks, ", tuning.cards, " a node; fix: choose another"));
  return {};
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
  const Algorithm* algorithm = findAlgorithm(call.collective, kShared);
  const bool can = algorithm != nullptr && tuning.ranks > 1 &&
                   (tuning.shares || tuning.sharesAll) && call.op != RedOp::PreMulSum;
  const bool want =
      wanted.empty() ? longestBuffer(call, tuning.ranks) >= tuning.sharedMin : wanted == kShared;
  if (!can || !want) return {};
  return algorithm->make({.ranks = tuning.ranks, .root = static_cast<std::uint32_t>(call.root)});
}

// 'shared' says what to do if all buffers are shared; this is what to do if not.
Status choose(const Call& call, const Tuning& tuning, Schedule* out) {
  std::string_view forced = forcedName(call, tuning);
  if (forced == kShared) forced = {};
  std::string_view name = bestName(call, tuning);
  Landing landing = Landing::Choose;
  if (!forced.empty()) WEFT_TRY(parseForced(forced, &name, &landing));
  const Algorithm* algorithm = findAlgorithm(call.collective, name);
  if (algorithm == nullptr)
    return Status::error(
        Code::InvalidUsage,
        text("unknown algorithm '", name, "' for ", collectiveName(call.collective),
             "; fix: use one of ", algorithmNames(call.collective)));
  if (algorithm->shared)
    return Status::error(Code::InvalidUsage, text("algorithm '", forced, "': '", name,
                                                  "' lands nowhere; fix: name it alone"));
  WEFT_TRY(checkFits(*algorithm, call, tuning));
  if (landing == Landing::Direct && !tuning.direct)
    return Status::error(Code::InvalidUsage,
                         text("algorithm '", forced,
                              "': this communicator cannot write into its peers' buffers; "
                              "fix: use ':staged'"));
  Schedule schedule = algorithm->make({.ranks = tuning.ranks,
                                       .root = static_cast<std::uint32_t>(call.root),
                                       .cards = tuning.cards});
  if (call.op == RedOp::PreMulSum && isReduction(call.collective))
    schedule = prescale(std::move(schedule));
  schedule = landsDirectly(call, tuning, landing) ? grantOut(std::move(schedule))
                                                  : stageOut(std::move(schedule));
  if (isRooted(call.collective)) schedule = withAgreement(std::move(schedule));
  *out = std::move(schedule);
  return {};
}

}  // namespace weft
