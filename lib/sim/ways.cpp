// SPDX-License-Identifier: Apache-2.0
#include "sim/ways.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace weft::sim {
namespace {

constexpr std::uint64_t kNoKey = 0;

void addUse(const Use& use, std::vector<Use>* uses) {
  const auto same = std::ranges::find(*uses, use.resource, &Use::resource);
  if (same == uses->end())
    uses->push_back(use);
  else
    same->weight += use.weight;
}

std::uint64_t keyOf(const std::vector<Use>& uses) {
  Hash hash;
  for (const Use& use : uses)
    hash.add(use.resource).add(static_cast<std::uint64_t>(std::llround(use.weight * 1e9)));
  return hash.value() | 1;
}

}  // namespace

Ways::Ways(const Network& network, const Symmetry& symmetry, Sharing& sharing)
    : network_(network),
      symmetry_(symmetry),
      sharing_(sharing),
      cables_(std::size_t{symmetry.classes()} * network.mostRanksOfANode()),
      out_(std::size_t{network.nodes()} * network.mostRanksOfANode()),
      in_(out_.size()) {}

Time Ways::latencyBetween(std::uint32_t from, std::uint32_t to) {
  const Cable& cable = cableBetween(from, to);
  if (cable.kind == Cable::Kind::Mesh) return cable.latency;
  return timeOf(std::max(railsOf(from, true).latencyNs, railsOf(to, false).latencyNs));
}

std::uint32_t Ways::channelBetween(std::uint32_t from, std::uint32_t to) {
  const Cable& cable = cableBetween(from, to);
  if (cable.kind == Cable::Kind::Mesh) return cable.channel;
  gatherUses(from, to);
  const auto [known, isNew] = open_.try_emplace(keyOf(uses_), 0);
  if (isNew) known->second = open(known->first);
  return known->second;
}

void Ways::left(std::uint32_t channel) {
  if (channel >= keys_.size() || keys_[channel] == kNoKey || !sharing_.isIdle(channel)) return;
  open_.erase(std::exchange(keys_[channel], kNoKey));
  closed_.push_back(channel);
}

const Ways::Cable& Ways::cableBetween(std::uint32_t from, std::uint32_t to) {
  static constexpr Cable kRails{Cable::Kind::Rails, 0, 0};
  if (network_.nodeOf(from) != network_.nodeOf(to)) return kRails;
  Cable& cable =
      cables_[std::size_t{from} * network_.mostRanksOfANode() + network_.localRankOf(to)];
  if (cable.kind == Cable::Kind::Unknown) cable = findCable(from, to);
  return cable;
}

Ways::Cable Ways::findCable(std::uint32_t from, std::uint32_t to) {
  Route route;
  network_.findRoute(from, to, &route);
  if (route.overRails) return {Cable::Kind::Rails, 0, 0};
  std::vector<Use> uses;
  for (const Use& use : route.uses) addUse(symmetry_.folded(use), &uses);
  if (network_.limitsMemory())  // of one node
    addUse(symmetry_.folded({network_.memoryOf(network_.nodeOf(from)), 2}), &uses);
  std::ranges::sort(uses, {}, &Use::resource);
  return {Cable::Kind::Mesh, sharing_.addChannel(uses), timeOf(route.latencyNs)};
}

// What leaves a rank so, or comes to it: of all of its group.
const Ways::Rails& Ways::railsOf(std::uint32_t rank, bool out) {
  Rails& rails = (out ? out_ : in_)[network_.groupOf(rank)];
  if (rails.latencyNs >= 0) return rails;
  Route route;
  network_.addRails(rank, out, &route);
  for (const Use& use : route.uses) addUse(symmetry_.folded(use), &rails.uses);
  if (network_.limitsMemory())  // links read and write it, too
    addUse(symmetry_.folded({network_.memoryOf(network_.nodeOf(rank)), 1}), &rails.uses);
  rails.latencyNs = route.latencyNs;
  return rails;
}

void Ways::gatherUses(std::uint32_t from, std::uint32_t to) {
  uses_ = railsOf(from, true).uses;
  for (const Use& use : railsOf(to, false).uses) addUse(use, &uses_);
  std::ranges::sort(uses_, {}, &Use::resource);
}

std::uint32_t Ways::open(std::uint64_t key) {
  if (closed_.empty()) closed_.push_back(sharing_.addChannel({}));
  const std::uint32_t channel = closed_.back();
  closed_.pop_back();
  sharing_.setUses(channel, uses_);
  if (channel >= keys_.size()) keys_.resize(channel + std::size_t{1}, kNoKey);
  keys_[channel] = key;
  return channel;
}

}  // namespace weft::sim
