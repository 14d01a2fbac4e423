// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/calls.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <tuple>

#include "base/text.h"
#include "plan/arrivals.h"
#include "plan/cache.h"
#include "plan/forced.h"
#include "tests/unit/plan/sample_machine.h"

namespace weft::simulation {
namespace {

using schedule::Collective;

constexpr Collective kCollectives[] = {
    Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
    Collective::Broadcast, Collective::Reduce,    Collective::Gather,
    Collective::Scatter,   Collective::AllToAll,  Collective::Barrier};
constexpr std::uint64_t kCounts[] = {0, 1, 2, 3, 5, 12, 13, 64, 200, 511};

// All that a Setting and its ranks' plans are made from.
plan::Tuning tuningOf(const Setting& setting) {
  plan::Tuning tuning;
  tuning.ranks = setting.ranks;
  tuning.direct = setting.direct;
  tuning.shares = tuning.sharesAll = tuning.maps = setting.shares;
  tuning.costs = plan::sampleCosts(setting.ranks);
  tuning.costs.oneProcess = setting.shares;
  tuning.costs.arenaBytes = setting.layout().arenaBytes;
  tuning.costs.stagingBytes = setting.cramped ? 256 : 4096;
  return tuning;
}

plan::Call callOf(const SimulatedCall& made) {
  plan::Call call;
  call.collective = made.collective;
  call.type = made.type;
  call.root = static_cast<int>(made.root);
  call.count = made.count;
  call.algorithm = made.algorithm;
  return call;
}

// False: this call cannot be made in this setting.
bool makePlans(const Setting& setting, SimulatedCall* made) {
  const plan::Call call = callOf(*made);
  const plan::Tuning tuning = tuningOf(setting);
  plan::Decision decision;
  if (!plan::decide(call, tuning, &decision).ok()) return false;
  for (std::uint32_t rank = 0; rank < setting.ranks; ++rank) {
    const transport::WindowLayout layout = setting.layout();
    const plan::BindTarget target{.rank = rank,
                                  .ranks = setting.ranks,
                                  .arrivalSlots = layout.arrivalSlots,
                                  .pairArrivalSlots = layout.pairArrivalSlots,
                                  .ring = layout.ring,
                                  .ringStages = layout.ringStages,
                                  .budget = {layout.arenaBytes, tuning.costs.stagingBytes},
                                  .streamMin = 1 << 20};
    std::unique_ptr<plan::Plan> plan;
    if (!plan::bindDecision(decision, call, tuning, target, &plan).ok()) return false;
    made->plans.push_back(std::move(plan));
  }
  return true;
}

std::vector<std::string> algorithmsOf(Collective collective) {
  std::vector<std::string> names{"", ""};  // the model's choice, twice as often
  std::istringstream list(plan::algorithmNames(collective));
  for (std::string name; std::getline(list, name, ',');)
    for (const char* protocol : {"", ":staged", ":staged-large", ":published", ":direct"})
      if (!name.starts_with("shared") || *protocol == 0) names.push_back(name + protocol);
  return names;
}

}  // namespace

transport::WindowLayout Setting::layout() const {
  static std::map<std::tuple<std::uint32_t, bool, bool>, std::uint32_t> arrivals;
  std::uint32_t& perPeer = arrivals[{ranks, direct, shares}];
  if (perPeer == 0) {
    plan::Tuning tuning;
    tuning.ranks = ranks;
    tuning.direct = direct;
    tuning.shares = tuning.sharesAll = tuning.maps = shares;
    tuning.costs = plan::sampleCosts(ranks);
    perPeer = plan::arrivalsPerPeer(tuning);
  }
  transport::WindowLayout layout;
  layout.ranks = ranks;
  layout.arrivalSlots = ranks * perPeer;
  layout.ring = rings ? 4 : 0;
  if (rings) layout.ringStages = {{2, 128}, {kMaxLanes, 256}};
  layout.pairArrivalSlots = ranks * layout.ring;
  layout.arenaBytes = ranks * (cramped ? std::size_t{512} : std::size_t{2048});
  layout.publishes = shares ? 1 : 0;
  return layout;
}

std::size_t SimulatedCall::inBytes(std::uint32_t rank) const {
  if (!schedule::hasIn(collective, root, rank)) return 0;
  const bool blocks = collective == Collective::ReduceScatter ||
                      collective == Collective::Scatter || collective == Collective::AllToAll;
  return count * (blocks ? ranks() : 1) * elementBytes();
}

std::size_t SimulatedCall::outBytes(std::uint32_t rank) const {
  if (!schedule::hasOut(collective, root, rank)) return 0;
  const bool blocks = collective == Collective::AllGather || collective == Collective::Gather ||
                      collective == Collective::AllToAll;
  return count * (blocks ? ranks() : 1) * elementBytes();
}

std::size_t SimulatedCall::aliasAt(std::uint32_t rank) const {
  return inBytes(rank) == outBytes(rank) ? 0 : rank * count * elementBytes();
}

std::uint64_t SimulatedCall::inputAt(std::uint64_t salt, std::uint32_t rank, std::size_t i) const {
  return (salt + rank * 0x9e3779b1u + i) * 0x85ebca6bu >> 7;
}

std::uint64_t SimulatedCall::expectedAt(std::uint64_t salt, std::uint32_t rank,
                                        std::size_t i) const {
  const auto sum = [&](std::size_t at) {
    std::uint64_t all = 0;
    for (std::uint32_t r = 0; r < ranks(); ++r) all += inputAt(salt, r, at);
    return all;
  };
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
      return sum(i);
    case Collective::ReduceScatter:
      return sum(rank * count + i);
    case Collective::Broadcast:
      return inputAt(salt, root, i);
    case Collective::Scatter:
      return inputAt(salt, root, rank * count + i);
    case Collective::AllToAll:
      return inputAt(salt, static_cast<std::uint32_t>(i / count), rank * count + i % count);
    default:
      return inputAt(salt, static_cast<std::uint32_t>(i / count), i % count);
  }
}

std::string SimulatedCall::text() const {
  return base::text(plan::collectiveName(collective), " count ", count, " of ", elementBytes(),
                    " bytes, root ", root, ", ", ranks(), " ranks, '", algorithm, "' -> ",
                    plans[0]->algorithm, ", ", plans[0]->segments, " segments");
}

const SimulatedCall& randomCall(const Setting& setting, Random& random) {
  using Key = std::tuple<std::uint32_t, bool, bool, bool, bool, std::size_t, bool, std::uint32_t,
                         std::uint64_t, std::size_t>;
  static std::map<Key, std::unique_ptr<SimulatedCall>> known;
  static std::map<Collective, std::vector<std::string>> algorithms;
  for (;;) {
    const std::size_t kind = random.below(std::size(kCollectives));
    std::vector<std::string>& names = algorithms[kCollectives[kind]];
    if (names.empty()) names = algorithmsOf(kCollectives[kind]);
    const bool bytes = random.chance(25);
    const auto root = static_cast<std::uint32_t>(random.below(setting.ranks));
    const std::uint64_t count = kCounts[random.below(std::size(kCounts))];
    const std::size_t name = random.below(names.size());
    std::unique_ptr<SimulatedCall>& made =
        known[{setting.ranks, setting.direct, setting.shares, setting.cramped, setting.rings, kind,
               bytes, schedule::isRooted(kCollectives[kind]) ? root : 0, count, name}];
    if (!made) {
      made = std::make_unique<SimulatedCall>(
          SimulatedCall{.collective = kCollectives[kind],
                        .type = bytes ? reduce::DType::U8 : reduce::DType::U32,
                        .root = schedule::isRooted(kCollectives[kind]) ? root : 0,
                        .count = kCollectives[kind] == Collective::Barrier ? 0 : count,
                        .algorithm = names[name],
                        .plans = {}});
      if (!makePlans(setting, made.get())) made->plans.clear();
    }
    if (!made->plans.empty()) return *made;
  }
}

}  // namespace weft::simulation
