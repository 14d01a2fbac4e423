// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/choice.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "transports/setup.h"

namespace weft::ofi {
namespace {

using Way = Offering::Way;

std::uint64_t hashOf(const std::string& name) { return Hash().add(name).value(); }

std::span<const Way> waysOf(const Offering& offering) {
  return std::span(offering.way).first(std::min<std::size_t>(offering.ways, Offering::kMax));
}

const Offering* leaderOf(std::span<const Offering> offerings) {
  const auto first = std::ranges::find_if(
      offerings, [](const Offering& offering) { return offering.takesPart != 0; });
  return first == offerings.end() ? nullptr : &*first;
}

bool oneHost(std::span<const Offering> offerings) {
  const Offering* leader = leaderOf(offerings);
  return std::ranges::all_of(offerings, [&](const Offering& offering) {
    return offering.takesPart == 0 || offering.host == leader->host;
  });
}

const Way* wayInto(const Offering& offering, std::uint64_t subnet) {
  const auto ways = waysOf(offering);
  const auto found =
      std::ranges::find_if(ways, [&](const Way& way) { return way.subnet == subnet; });
  return found == ways.end() ? nullptr : &*found;
}

// Two hosts with one address in it: a bridge that each host has for itself, such as docker0.
bool reachesAll(std::span<const Offering> offerings, std::uint64_t subnet) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;  // address, host
  for (const Offering& offering : offerings) {
    if (offering.takesPart == 0) continue;
    const Way* way = wayInto(offering, subnet);
    if (way == nullptr) return false;
    for (const auto& [address, host] : seen)
      if (address == way->address && host != offering.host) return false;
    seen.emplace_back(way->address, offering.host);
  }
  return true;
}

// One for each device of the leader, in its order.
std::vector<std::uint64_t> commonSubnets(std::span<const Offering> offerings) {
  const Offering& leader = *leaderOf(offerings);
  const bool local = oneHost(offerings);
  std::vector<Way> ways(waysOf(leader).begin(), waysOf(leader).end());
  if (local && leader.named == 0)
    std::stable_partition(ways.begin(), ways.end(), [](const Way& way) { return way.loopback; });
  std::vector<std::uint64_t> subnets;
  std::set<std::uint64_t> devices;
  for (const Way& way : ways)
    if ((local || way.loopback == 0) && reachesAll(offerings, way.subnet) &&
        devices.insert(way.device).second)
      subnets.push_back(way.subnet);
  subnets.resize(std::min<std::size_t>(subnets.size(), leader.named != 0 ? kMaxRails : 1));
  return subnets;
}

void tellUnused(const std::vector<Candidate>& own, const std::vector<Candidate>& chosen, bool local,
                std::string* why) {
  for (const Candidate& candidate : own)
    if (std::ranges::none_of(chosen,
                             [&](const Candidate& used) { return used.info == candidate.info; }))
      *why += text(" ", candidate.device, " ", candidate.address, ": ",
                   candidate.loopback && !local ? "reaches this host only" : "not needed", ";");
}

}  // namespace

Offering describeHost(std::uint64_t asked) {
  Offering offering;
  offering.host =
      Hash().add(transport::bootId()).add(hostName()).add(transport::netNamespace()).value();
  offering.asked = asked;
  return offering;
}

void addWays(const std::vector<Candidate>& own, Offering* offering) {
  offering->ways = static_cast<std::uint32_t>(std::min(own.size(), Offering::kMax));
  for (std::size_t i = 0; i < offering->ways; ++i)
    offering->way[i] = {hashOf(own[i].subnet), hashOf(own[i].address), hashOf(own[i].device),
                        own[i].loopback};
}

std::vector<Candidate> chooseIp(const std::vector<Candidate>& own,
                                std::span<const Offering> offerings, std::string* why) {
  std::vector<Candidate> chosen;
  if (leaderOf(offerings) == nullptr) return chosen;
  for (const std::uint64_t subnet : commonSubnets(offerings))
    for (const Candidate& candidate : own)
      if (hashOf(candidate.subnet) == subnet) {
        chosen.push_back(candidate);
        break;
      }
  for (const Candidate& candidate : own)
    if (chosen.empty() && !candidate.loopback) chosen.push_back(candidate);
  tellUnused(own, chosen, oneHost(offerings), why);
  return chosen;
}

std::vector<Candidate> chooseNics(const std::vector<Candidate>& own, std::uint32_t self,
                                  std::span<const Offering> offerings) {
  std::size_t here = 0;    // ranks of this host
  std::size_t before = 0;  // of them, lower ones
  for (std::size_t rank = 0; rank < offerings.size(); ++rank)
    if (offerings[rank].takesPart != 0 && offerings[rank].host == offerings[self].host) {
      ++here;
      before += rank < self;
    }
  const auto near = static_cast<std::size_t>(std::ranges::count_if(
      own, [&](const Candidate& candidate) { return candidate.distance == own.front().distance; }));
  if (near == 0) return {};
  std::vector<Candidate> chosen = own;
  std::rotate(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(before % near),
              chosen.begin() + static_cast<std::ptrdiff_t>(near));
  const std::size_t share = (own.size() + here - 1) / std::max<std::size_t>(here, 1);
  chosen.resize(std::min({chosen.size(), std::max<std::size_t>(share, 1), kMaxRails}));
  return chosen;
}

}  // namespace weft::ofi
