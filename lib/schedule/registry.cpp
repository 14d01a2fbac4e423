// SPDX-License-Identifier: Apache-2.0
#include "schedule/registry.h"

#include "schedule/generators.h"
#include "schedule/nodes.h"

namespace weft {
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
  return make(s.cards, s.ranks / s.cards, rail);
}
template <Schedule (*make)(const std::vector<uint32_t>&)>
Schedule twoLevel(const Shape& s) {
  return make(s.nodeOf.empty() ? Nodes::even(s.cards, s.ranks / s.cards) : s.nodeOf);
}
Schedule broadcastTwoLevel(const Shape& s) {
  return twoLevelBroadcast(s.nodeOf.empty() ? Nodes::even(s.cards, s.ranks / s.cards) : s.nodeOf,
                           s.root);
}

constexpr auto kRank = SumOrder::Rank, kOwn = SumOrder::Algorithm, kNone = SumOrder::None;
constexpr auto kFlat = Levels::One, kTwoLevel = Levels::Two, kEven = Levels::TwoEven;
constexpr bool kShared = true;

// clang-format off
constexpr Algorithm kAlgorithms[] = {
    {"one-shot",            AllReduce,     flat<oneShotAllReduce>,           kRank, kFlat, false, /*inPlace=*/false},
    {"mesh",                AllReduce,     flat<meshAllReduce>,              kRank},
    {"ring",                AllReduce,     flat<ringAllReduce>,              kOwn},
    {"circulant",           AllReduce,     flat<circulantAllReduce>,         kOwn},
    {"two-level",           AllReduce,     twoLevel<twoLevelAllReduce>,      kOwn, kTwoLevel},
    {"two-level-ring",      AllReduce,     rails<railsAllReduce, ringAllReduce>,               kOwn, kEven},
    {"two-level-circulant", AllReduce,     rails<railsAllReduce, circulantAllReduce>,          kOwn, kEven},
    {"shared",              AllReduce,     flat<sharedAllReduce>,           kRank, kFlat, kShared},
    {"mesh",                ReduceScatter, flat<meshReduceScatter>,          kRank},
    {"ring",                ReduceScatter, flat<ringReduceScatter>,          kOwn},
    {"circulant",           ReduceScatter, flat<circulantReduceScatter>,     kOwn},
    {"two-level",           ReduceScatter, twoLevel<twoLevelReduceScatter>,  kOwn, kTwoLevel},
    {"two-level-circulant", ReduceScatter, rails<railsReduceScatter, circulantReduceScatter>,  kOwn, kEven},
    {"shared",              ReduceScatter, flat<sharedReduceScatter>,       kRank, kFlat, kShared},
    {"mesh",                AllGather,     flat<meshAllGather>},
    {"ring",                AllGather,     flat<ringAllGather>},
    {"circulant",           AllGather,     flat<circulantAllGather>},
    {"two-level",           AllGather,     twoLevel<twoLevelAllGather>,      kNone, kTwoLevel},
    {"two-level-circulant", AllGather,     rails<railsAllGather, circulantAllGather>,          kNone, kEven},
    {"shared",              AllGather,     flat<sharedAllGather>,           kNone, kFlat, kShared},
    {"direct",              Broadcast,     rooted<directBroadcast>},
    {"scatter-all-gather",  Broadcast,     rooted<scatterAllGatherBroadcast>},
    {"binomial",            Broadcast,     rooted<binomialBroadcast>},
    {"two-level",           Broadcast,     broadcastTwoLevel,                kNone, kTwoLevel},
    {"shared",              Broadcast,     rooted<sharedBroadcast>,         kNone, kFlat, kShared},
    {"one-shot",            Reduce,        rooted<oneShotReduce>,            kRank},
    {"mesh",                Reduce,        rooted<meshReduce>,               kRank},
    {"binomial",            Reduce,        rooted<binomialReduce>,           kOwn},
    {"direct",              Gather,        rooted<directGather>},
    {"direct",              Scatter,       rooted<directScatter>},
    {"direct",              AllToAll,      flat<directAllToAll>},
    {"two-level",           AllToAll,      twoLevel<twoLevelAllToAll>,       kNone, kTwoLevel},
    {"shared",              AllToAll,      flat<sharedAllToAll>,            kNone, kFlat, kShared},
    {"direct",              Barrier,       flat<directBarrier>},
    {"dissemination",       Barrier,       flat<disseminationBarrier>},
};
// clang-format on

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* findAlgorithm(Collective collective, std::string_view name) {
  for (const Algorithm& a : kAlgorithms)
    if (a.collective == collective && a.name == name) return &a;
  return nullptr;
}

}  // namespace weft
