// SPDX-License-Identifier: Apache-2.0
#include "schedule/registry.h"

#include <numeric>
#include <utility>

#include "schedule/algorithms/generators.h"
#include "schedule/nodes.h"

namespace weft::schedule {
namespace {

using enum Collective;

// Adapters from Shape to the generators' own parameters.
template <Schedule (*make)(uint32_t)>
Schedule flat(const Shape& s) {
  return make(s.ranks);
}
template <Schedule (*make)(uint32_t, uint32_t)>
Schedule rooted(const Shape& s) {
  return make(s.ranks, s.root);
}
template <Schedule (*make)(uint32_t, uint32_t, RailGenerator), RailGenerator rail>
Schedule rails(const Shape& s) {
  return make(s.localRanks, s.ranks / s.localRanks, rail);
}
std::vector<uint32_t> nodesOf(const Shape& s) {
  return s.nodeOf.empty() ? Nodes::even(s.localRanks, s.ranks / s.localRanks) : s.nodeOf;
}
template <Schedule (*make)(const std::vector<uint32_t>&)>
Schedule twoLevel(const Shape& s) {
  return make(nodesOf(s));
}
template <Schedule (*make)(const forest::Forest&)>
Schedule alongTrees(const Shape& s) {
  if (s.links != nullptr) return make(s.links->fromAll);
  std::vector<uint32_t> all(s.ranks);
  std::iota(all.begin(), all.end(), 0u);
  return make(forest::stars(s.ranks, all));
}
template <Schedule (*make)(const forest::Forest&)>
Schedule alongTreesFrom(const Shape& s) {
  forest::Forest trees;
  // From one rank they grow wherever they have grown from all.
  if (s.links == nullptr || !forest::grow(s.links->graph, {s.root}, s.links->limits, &trees).ok())
    trees = forest::stars(s.ranks, {s.root});
  return make(trees);
}
Schedule broadcastTwoLevel(const Shape& s) { return twoLevelBroadcast(nodesOf(s), s.root); }

constexpr auto kRank = SumOrder::Rank, kOwn = SumOrder::Algorithm, kNone = SumOrder::None;
constexpr auto kFlat = Levels::One, kTwoLevel = Levels::Two, kEven = Levels::TwoEven,
               kLinks = Levels::Links;
constexpr bool kShared = true, kStaged = false, kAlike = true, kApart = false, kPulls = true;
constexpr uint32_t kAuto = 1;

// clang-format off
constexpr Algorithm kAlgorithms[] = {
//   name                   collective     generator                                      automatic order  levels
    {"one-shot",            AllReduce,     flat<oneShotAllReduce>,                        kAuto,   kRank, kFlat, kStaged, kAlike},
    {"mesh",                AllReduce,     flat<meshAllReduce>,                           kAuto,   kRank},
    {"ring",                AllReduce,     flat<ringAllReduce>,                           kForced, kOwn},
    {"circulant",           AllReduce,     flat<circulantAllReduce>,                      kMany,   kOwn},
    {"recursive-doubling",  AllReduce,     flat<doublingAllReduce>,                       kMany,   kOwn},
    {"two-level",           AllReduce,     twoLevel<twoLevelAllReduce>,                   kAuto,   kOwn, kTwoLevel},
    {"two-level-ring",      AllReduce,     rails<railsAllReduce, ringAllReduce>,          kAuto,   kOwn, kEven},
    {"two-level-circulant", AllReduce,     rails<railsAllReduce, circulantAllReduce>,     kAuto,   kOwn, kEven},
    {"two-level-doubling",  AllReduce,     rails<railsAllReduce, doublingRail>,           kAuto,   kOwn, kEven},
    {"forest",              AllReduce,     alongTrees<forestAllReduce>,                   kAuto,   kOwn, kLinks},
    {"shared",              AllReduce,     flat<sharedAllReduce>,                         kAuto,   kRank, kFlat, kShared},
    {"mesh",                ReduceScatter, flat<meshReduceScatter>,                       kAuto,   kRank},
    {"ring",                ReduceScatter, flat<ringReduceScatter>,                       kForced, kOwn},
    {"circulant",           ReduceScatter, flat<circulantReduceScatter>,                  kMany,   kOwn},
    {"two-level",           ReduceScatter, twoLevel<twoLevelReduceScatter>,               kAuto,   kOwn, kTwoLevel},
    {"two-level-circulant", ReduceScatter, rails<railsReduceScatter, circulantReduceScatter>, kAuto,   kOwn, kEven},
    {"forest",              ReduceScatter, alongTrees<forestReduceScatter>,               kAuto,   kOwn, kLinks},
    {"shared",              ReduceScatter, flat<sharedReduceScatter>,                     kAuto,   kRank, kFlat, kShared},
    {"mesh",                AllGather,     flat<meshAllGather>,                           kAuto,   kNone, kFlat, kStaged, kAlike},
    {"ring",                AllGather,     flat<ringAllGather>,                           kForced},
    {"circulant",           AllGather,     flat<circulantAllGather>,                      kMany},
    {"two-level",           AllGather,     twoLevel<twoLevelAllGather>,                   kAuto,   kNone, kTwoLevel},
    {"two-level-circulant", AllGather,     rails<railsAllGather, circulantAllGather>,     kAuto,   kNone, kEven},
    {"forest",              AllGather,     alongTrees<forestAllGather>,                   kAuto,   kNone, kLinks},
    {"shared",              AllGather,     flat<sharedAllGather>,                         kAuto,   kNone, kFlat, kShared},
    {"shared-pull",         AllGather,     flat<sharedPullAllGather>,                     kAuto,   kNone, kFlat, kShared, kApart, kPulls},
    {"direct",              Broadcast,     rooted<directBroadcast>,                       kAuto,   kNone, kFlat, kStaged, kAlike},
    {"scatter-all-gather",  Broadcast,     rooted<scatterAllGatherBroadcast>,             3},
    {"binomial",            Broadcast,     rooted<binomialBroadcast>,                     kMany},
    {"two-level",           Broadcast,     broadcastTwoLevel,                             kAuto,   kNone, kTwoLevel},
    {"forest",              Broadcast,     alongTreesFrom<forestBroadcast>,               kAuto,   kNone, kLinks},
    {"shared",              Broadcast,     rooted<sharedBroadcast>,                       kAuto,   kNone, kFlat, kShared},
    {"shared-pull",         Broadcast,     rooted<sharedPullBroadcast>,                   kAuto,   kNone, kFlat, kShared, kApart, kPulls},
    {"one-shot",            Reduce,        rooted<oneShotReduce>,                         kAuto,   kRank},
    {"mesh",                Reduce,        rooted<meshReduce>,                            kAuto,   kRank},
    {"binomial",            Reduce,        rooted<binomialReduce>,                        kMany,   kOwn},
    {"forest",              Reduce,        alongTreesFrom<forestReduce>,                  kAuto,   kOwn, kLinks},
    {"shared",              Reduce,        rooted<sharedReduce>,                          kAuto,   kRank, kFlat, kShared},
    {"shared-pull",         Reduce,        rooted<sharedPullReduce>,                      kAuto,   kRank, kFlat, kShared, kApart, kPulls},
    {"direct",              Gather,        rooted<directGather>,                          kAuto},
    {"shared",              Gather,        rooted<sharedGather>,                          kAuto,   kNone, kFlat, kShared},
    {"shared-pull",         Gather,        rooted<sharedPullGather>,                      kAuto,   kNone, kFlat, kShared, kApart, kPulls},
    {"direct",              Scatter,       rooted<directScatter>,                         kAuto},
    {"shared",              Scatter,       rooted<sharedScatter>,                         kAuto,   kNone, kFlat, kShared},
    {"direct",              AllToAll,      flat<directAllToAll>,                          kAuto},
    {"two-level",           AllToAll,      twoLevel<twoLevelAllToAll>,                    kAuto,   kNone, kTwoLevel},
    {"shared",              AllToAll,      flat<sharedAllToAll>,                          kAuto,   kNone, kFlat, kShared},
    {"shared-pull",         AllToAll,      flat<sharedPullAllToAll>,                      kAuto,   kNone, kFlat, kShared, kApart, kPulls},
    {"direct",              Barrier,       flat<directBarrier>,                           kAuto},
    {"dissemination",       Barrier,       flat<disseminationBarrier>,                    kAuto},
};
// clang-format on

std::span<const Algorithm> list = kAlgorithms;

}  // namespace

std::span<const Algorithm> algorithms() { return list; }

std::span<const Algorithm> exchangeAlgorithms(std::span<const Algorithm> other) {
  return std::exchange(list, other);
}

const Algorithm* findAlgorithm(Collective collective, std::string_view name) {
  for (const Algorithm& a : list)
    if (a.collective == collective && a.name == name) return &a;
  return nullptr;
}

}  // namespace weft::schedule
