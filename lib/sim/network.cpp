// SPDX-License-Identifier: Apache-2.0
#include "sim/network.h"

#include <algorithm>

#include "base/invalid.h"
#include "base/number.h"
#include "base/text.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kNoLink = ~0u;

double rateOfSpeed(const topology::LinkSpeed& speed) { return speed.gbit / 8; }  // bytes a ns

}  // namespace

Status Network::make(const topology::Fabric& fabric, const std::vector<Change>& changes,
                     double memory, Network* out) {
  Network network;
  network.fabric_ = fabric;
  network.memory_ = memory;
  network.most_ = fabric.mostRanksOfANode();
  network.perNode_ =
      static_cast<std::uint32_t>(2 * fabric.mesh.size() + 2 * fabric.rails.size() + 1);
  for (std::uint32_t node = 0; node < fabric.nodes.size(); ++node) {
    network.first_.push_back(static_cast<std::uint32_t>(network.nodeOf_.size()));
    network.nodeOf_.insert(network.nodeOf_.end(), fabric.nodes[node].ranks, node);
  }
  network.meshOf_.assign(std::size_t{network.most_} * network.most_, kNoLink);
  for (std::uint32_t i = 0; i < fabric.mesh.size(); ++i) {
    const topology::MeshLink& link = fabric.mesh[i];
    network.meshOf_[link.a * network.most_ + link.b] = 2 * i;
    network.meshOf_[link.b * network.most_ + link.a] = 2 * i + 1;
  }
  network.railsOf_.resize(network.most_);
  for (std::uint32_t r = 0; r < fabric.rails.size(); ++r)
    for (const std::uint32_t rank : fabric.rails[r].ranks) network.railsOf_[rank].push_back(r);
  for (const std::vector<std::uint32_t>& rails : network.railsOf_)
    network.groupOfLocal_.push_back(static_cast<std::uint32_t>(
        std::ranges::find(network.railsOf_, rails) - network.railsOf_.begin()));
  for (const Change& change : changes) WEFT_TRY(network.apply(change));
  *out = std::move(network);
  return {};
}

Status Network::apply(const Change& change) {
  if (change.node != kAllNodes && change.node >= nodes())
    return invalid("there is no node ", change.node, ": the nodes are 0 to ", nodes() - 1);
  const auto named = std::ranges::find(fabric_.rails, change.link, &topology::Rail::name);
  std::uint32_t resource = 0;
  if (named != fabric_.rails.end()) {
    resource = railOut(0, static_cast<std::uint32_t>(named - fabric_.rails.begin()));
  } else {
    const std::size_t dash = change.link.find('-');
    std::uint32_t a = 0, b = 0;
    const bool isPair = dash != change.link.npos &&
                        parseNumber(std::string_view(change.link).substr(0, dash), &a) &&
                        parseNumber(std::string_view(change.link).substr(dash + 1), &b);
    if (!isPair || a >= most_ || b >= most_ || indexOfMesh(a, b) == kNoLink)
      return invalid("'", change.link, "' is no mesh link of a node, such as 0-1, and no rail");
    resource = indexOfMesh(a, b) & ~1u;
  }
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    if (change.node != kAllNodes && change.node != node) continue;
    for (const std::uint32_t way : {resource, resource + 1}) {
      const std::uint32_t r = node * perNode_ + way;
      changed_[r] = rateOf(r) * change.factor;
    }
  }
  return {};
}

std::uint32_t Network::indexOfMesh(std::uint32_t a, std::uint32_t b) const {
  return meshOf_[a * most_ + b];
}

double Network::rateOf(std::uint32_t resource) const {
  if (const auto known = changed_.find(resource); known != changed_.end()) return known->second;
  const std::uint32_t i = resource % perNode_;
  const auto mesh = static_cast<std::uint32_t>(fabric_.mesh.size());
  if (i < 2 * mesh) return rateOfSpeed(fabric_.mesh[i / 2].speed);
  if (i + 1 < perNode_) return rateOfSpeed(rail((i - 2 * mesh) / 2).speed);
  return memory_;
}

std::string Network::nameOf(std::uint32_t resource) const {
  const std::uint32_t i = resource % perNode_;
  const auto mesh = static_cast<std::uint32_t>(fabric_.mesh.size());
  const std::string& node = fabric_.nodes[resource / perNode_].name;
  if (i + 1 == perNode_) return text(node, " memory");
  if (i >= 2 * mesh)
    return text(node, " ", rail((i - 2 * mesh) / 2).name, i % 2 == 0 ? " out" : " in");
  const topology::MeshLink& link = fabric_.mesh[i / 2];
  return text(node, " ", i % 2 == 0 ? link.a : link.b, "->", i % 2 == 0 ? link.b : link.a);
}

// Bytes go over all rails that a rank is on, in parts as their rates.
bool Network::addRails(std::uint32_t rank, bool out, Route* route) const {
  const std::uint32_t node = nodeOf_[rank];
  double all = 0;
  for (const std::uint32_t r : railsOf_[localRankOf(rank)]) all += rateOf(railOut(node, r));
  if (all <= 0) return false;
  for (const std::uint32_t r : railsOf_[localRankOf(rank)]) {
    const std::uint32_t way = railOut(node, r) + (out ? 0 : 1);
    if (rateOf(way) <= 0) continue;
    route->uses.push_back({way, rateOf(way) / all});
    route->latencyNs = std::max(route->latencyNs, rail(r).speed.us * 1e3);
  }
  return true;
}

bool Network::joinsByMemory(std::uint32_t from, std::uint32_t to) const {
  if (!fabric_.memory || nodeOf_[from] != nodeOf_[to]) return false;
  const std::uint32_t link = indexOfMesh(localRankOf(from), localRankOf(to));
  if (link == kNoLink) return true;
  return rateOf(nodeOf_[from] * perNode_ + link) <= rateOfSpeed(*fabric_.memory);
}

bool Network::findRoute(std::uint32_t from, std::uint32_t to, Route* route) const {
  *route = {};
  route->byMemory = joinsByMemory(from, to);
  if (route->byMemory) return true;
  const bool isNear = nodeOf_[from] == nodeOf_[to];
  const std::uint32_t link = isNear ? indexOfMesh(localRankOf(from), localRankOf(to)) : kNoLink;
  const std::uint32_t way = nodeOf_[from] * perNode_ + link;
  route->overRails = link == kNoLink || rateOf(way) <= 0;
  if (route->overRails) return addRails(from, true, route) && addRails(to, false, route);
  route->uses = {{way, 1}};
  route->latencyNs = fabric_.mesh[link / 2].speed.us * 1e3;
  return true;
}

// Between nodes it is enough that each rank is on a rail.
Status Network::checkConnected() const {
  Route route;
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    const std::uint32_t first = first_[node], end = first + ranksOfNode(node);
    for (std::uint32_t a = first; a < end; ++a)
      for (std::uint32_t b = first; b < end; ++b)
        if (a != b && !findRoute(a, b, &route))
          return invalid(
              "ranks ", localRankOf(a), " and ", localRankOf(b), " of node ",
              fabric_.nodes[node].name,
              " are joined by no link, memory or rails; fix: add a line that joins them");
    for (std::uint32_t a = first; nodes() > 1 && a < end; ++a)
      if (!addRails(a, true, &route))
        return invalid("rank ", localRankOf(a), " of node ", fabric_.nodes[node].name,
                       " reaches no other node; fix: add a rail with it");
  }
  return {};
}

double Network::rateOfMesh(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t link = indexOfMesh(localRankOf(from), localRankOf(to));
  return link == kNoLink ? 0 : rateOf(nodeOf_[from] * perNode_ + link);
}

Network::Ports Network::portsOfRail(std::uint32_t node, std::uint32_t r) const {
  return {rateOf(railOut(node, r)), rateOf(railOut(node, r) + 1)};
}

Network::Ports Network::portsOfRank(std::uint32_t rank) const {
  const std::uint32_t node = nodeOf_[rank];
  Ports ports;
  const auto add = [&](const Ports& more) {
    ports.out += more.out;
    ports.in += more.in;
  };
  for (std::uint32_t b = 0; b < ranksOfNode(node); ++b) {
    const std::uint32_t peer = rankOf(node, b);
    if (peer != rank) add({rateOfMesh(rank, peer), rateOfMesh(peer, rank)});
  }
  for (const std::uint32_t r : railsOf_[localRankOf(rank)]) add(portsOfRail(node, r));
  return ports;
}

Network::Ports Network::portsOfNode(std::uint32_t node) const {
  Ports ports;
  for (std::uint32_t r = 0; r < fabric_.rails.size(); ++r) {
    ports.out += portsOfRail(node, r).out;
    ports.in += portsOfRail(node, r).in;
  }
  return ports;
}

bool Network::isSymmetric() const {
  return changed_.empty() && std::ranges::all_of(fabric_.nodes, [&](const auto& node) {
           return node.ranks == fabric_.nodes[0].ranks;
         });
}

// The rail on which the ranks of this one stand, each `step` further on.
std::uint32_t Network::shiftedRail(std::uint32_t r, std::uint32_t step) const {
  std::vector<std::uint32_t> ranks = rail(r).ranks;
  for (std::uint32_t& rank : ranks) rank = (rank + step) % most_;
  std::ranges::sort(ranks);
  // Of several with these ranks, the one of the same place among them.
  const auto before =
      std::count_if(fabric_.rails.begin(), fabric_.rails.begin() + r,
                    [&](const auto& other) { return other.ranks == rail(r).ranks; });
  auto left = before;
  for (std::uint32_t k = 0; k < fabric_.rails.size(); ++k)
    if (rail(k).ranks == ranks && rail(k).speed == rail(r).speed && left-- == 0) return k;
  return kNoLink;
}

std::uint32_t Network::shifted(std::uint32_t i, std::uint32_t step) const {
  const auto mesh = static_cast<std::uint32_t>(fabric_.mesh.size());
  if (i + 1 == perNode_) return i;
  if (i >= 2 * mesh) {
    const std::uint32_t r = shiftedRail((i - 2 * mesh) / 2, step);
    return r == kNoLink ? kNoLink : 2 * mesh + 2 * r + i % 2;
  }
  const topology::MeshLink& link = fabric_.mesh[i / 2];
  const std::uint32_t a = (link.a + step) % most_, b = (link.b + step) % most_;
  const std::uint32_t to = i % 2 == 0 ? indexOfMesh(a, b) : indexOfMesh(b, a);
  return to != kNoLink && fabric_.mesh[to / 2].speed == link.speed ? to : kNoLink;
}

bool Network::isSymmetricBy(std::uint32_t step) const {
  if (!isSymmetric() || most_ % step != 0) return false;
  for (std::uint32_t i = 0; i < perNode_; ++i)
    if (shifted(i, step) == kNoLink) return false;
  return true;
}

}  // namespace weft::sim
