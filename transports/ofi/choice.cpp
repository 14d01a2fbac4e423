// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/choice.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"

namespace weft::ofi {
namespace {

using Way = Card::Way;

std::uint64_t hashOf(const std::string& name) { return Hash().add(name).value(); }

std::span<const Way> waysOf(const Card& card) {
  return std::span(card.way).first(std::min<std::size_t>(card.ways, Card::kMax));
}

const Card* leaderOf(std::span<const Card> cards) {
  const auto first = std::find_if(cards.begin(), cards.end(),
                                  [](const Card& card) { return card.takesPart != 0; });
  return first == cards.end() ? nullptr : &*first;
}

bool oneHost(std::span<const Card> cards) {
  const Card* leader = leaderOf(cards);
  return std::all_of(cards.begin(), cards.end(), [&](const Card& card) {
    return card.takesPart == 0 || card.host == leader->host;
  });
}

const Way* wayInto(const Card& card, std::uint64_t subnet) {
  const auto ways = waysOf(card);
  const auto found =
      std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.subnet == subnet; });
  return found == ways.end() ? nullptr : &*found;
}

// Two hosts with one address in it: a bridge that each host has for itself, such as docker0.
bool reachesAll(std::span<const Card> cards, std::uint64_t subnet) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;  // address, host
  for (const Card& card : cards) {
    if (card.takesPart == 0) continue;
    const Way* way = wayInto(card, subnet);
    if (way == nullptr) return false;
    for (const auto& [address, host] : seen)
      if (address == way->address && host != card.host) return false;
    seen.emplace_back(way->address, card.host);
  }
  return true;
}

// One for each device of the leader, in its order.
std::vector<std::uint64_t> commonSubnets(std::span<const Card> cards) {
  const Card& leader = *leaderOf(cards);
  const bool local = oneHost(cards);
  std::vector<Way> ways(waysOf(leader).begin(), waysOf(leader).end());
  if (local && leader.named == 0)
    std::stable_partition(ways.begin(), ways.end(), [](const Way& way) { return way.loopback; });
  std::vector<std::uint64_t> subnets;
  std::set<std::uint64_t> devices;
  for (const Way& way : ways)
    if ((local || way.loopback == 0) && reachesAll(cards, way.subnet) &&
        devices.insert(way.device).second)
      subnets.push_back(way.subnet);
  subnets.resize(std::min<std::size_t>(subnets.size(), leader.named != 0 ? kMaxRails : 1));
  return subnets;
}

void tellUnused(const std::vector<Candidate>& own, const std::vector<Candidate>& chosen, bool local,
                std::string* why) {
  for (const Candidate& candidate : own)
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const Candidate& used) { return used.info == candidate.info; }))
      *why += text(" ", candidate.device, " ", candidate.address, ": ",
                   candidate.loopback && !local ? "reaches this host only" : "not needed", ";");
}

}  // namespace

Card describeHost(std::uint64_t asked) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat info {};
  const bool known = ::stat("/proc/self/ns/net", &info) == 0;
  Card card;
  card.host = Hash().add(boot).add(hostName()).add(known ? info.st_ino : 0).value();
  card.asked = asked;
  return card;
}

void addWays(const std::vector<Candidate>& own, Card* card) {
  card->ways = static_cast<std::uint32_t>(std::min(own.size(), Card::kMax));
  for (std::size_t i = 0; i < card->ways; ++i)
    card->way[i] = {hashOf(own[i].subnet), hashOf(own[i].address), hashOf(own[i].device),
                    own[i].loopback};
}

std::vector<Candidate> chooseIp(const std::vector<Candidate>& own, std::span<const Card> cards,
                                std::string* why) {
  std::vector<Candidate> chosen;
  if (leaderOf(cards) == nullptr) return chosen;
  for (const std::uint64_t subnet : commonSubnets(cards))
    for (const Candidate& candidate : own)
      if (hashOf(candidate.subnet) == subnet) {
        chosen.push_back(candidate);
        break;
      }
  for (const Candidate& candidate : own)
    if (chosen.empty() && !candidate.loopback) chosen.push_back(candidate);
  tellUnused(own, chosen, oneHost(cards), why);
  return chosen;
}

std::vector<Candidate> chooseNics(const std::vector<Candidate>& own, std::uint32_t self,
                                  std::span<const Card> cards) {
  std::size_t here = 0;    // ranks of this host
  std::size_t before = 0;  // of them, lower ones
  for (std::size_t rank = 0; rank < cards.size(); ++rank)
    if (cards[rank].takesPart != 0 && cards[rank].host == cards[self].host) {
      ++here;
      before += rank < self;
    }
  const auto near = static_cast<std::size_t>(std::count_if(
      own.begin(), own.end(),
      [&](const Candidate& candidate) { return candidate.distance == own.front().distance; }));
  if (near == 0) return {};
  std::vector<Candidate> chosen = own;
  std::rotate(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(before % near),
              chosen.begin() + static_cast<std::ptrdiff_t>(near));
  const std::size_t share = (own.size() + here - 1) / std::max<std::size_t>(here, 1);
  chosen.resize(std::min({chosen.size(), std::max<std::size_t>(share, 1), kMaxRails}));
  return chosen;
}

}  // namespace weft::ofi
