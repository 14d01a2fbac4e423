// SPDX-License-Identifier: Apache-2.0
#include "tools/health/rounds.h"

#include <algorithm>

namespace weft::health {
namespace {

// The circle method: everyone meets everyone in n - 1 rounds, n if n is odd.
std::vector<Round> tournament(int players) {
  const int seats = players < 2 ? 0 : players + players % 2;
  std::vector<Round> rounds;
  for (int turn = 0; turn + 1 < seats; ++turn) {
    Round& round = rounds.emplace_back();
    const auto at = [&](int seat) { return seat == 0 ? 0 : 1 + (seat - 1 + turn) % (seats - 1); };
    for (int i = 0; i < seats / 2; ++i) {
      const auto [a, b] = std::minmax({at(i), at(seats - 1 - i)});
      if (b < players) round.push_back({a, b});
    }
  }
  return rounds;
}

std::vector<std::vector<int>> ranksByHost(std::span<const int> hostOf) {
  std::vector<std::vector<int>> hosts;
  for (std::size_t rank = 0; rank < hostOf.size(); ++rank) {
    const auto host = static_cast<std::size_t>(hostOf[rank]);
    if (hosts.size() <= host) hosts.resize(host + 1);
    hosts[host].push_back(static_cast<int>(rank));
  }
  return hosts;
}

// Adds `more` to the rounds from `first` on, one to one.
void lay(const std::vector<Round>& more, std::size_t first, std::vector<Round>* rounds) {
  rounds->resize(std::max(rounds->size(), first + more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) {
    Round& round = (*rounds)[first + i];
    round.insert(round.end(), more[i].begin(), more[i].end());
  }
}

std::vector<Round> inside(const std::vector<int>& ranks) {
  std::vector<Round> rounds = tournament(static_cast<int>(ranks.size()));
  for (Round& round : rounds)
    for (Pair& pair : round)
      pair = {ranks[static_cast<std::size_t>(pair.a)], ranks[static_cast<std::size_t>(pair.b)]};
  return rounds;
}

std::vector<Round> between(const std::vector<int>& one, const std::vector<int>& other) {
  const auto& few = one.size() <= other.size() ? one : other;
  const auto& many = one.size() <= other.size() ? other : one;
  std::vector<Round> rounds(many.size());
  for (std::size_t turn = 0; turn < many.size(); ++turn) {
    for (std::size_t i = 0; i < few.size(); ++i) {
      const auto [a, b] = std::minmax({few[i], many[(i + turn) % many.size()]});
      rounds[turn].push_back({a, b});
    }
  }
  return rounds;
}

}  // namespace

std::vector<Round> pairRounds(std::span<const int> hostOf) {
  const auto hosts = ranksByHost(hostOf);
  std::vector<Round> rounds;
  for (const std::vector<int>& ranks : hosts) lay(inside(ranks), 0, &rounds);
  for (const Round& matches : tournament(static_cast<int>(hosts.size()))) {
    const std::size_t first = rounds.size();
    for (const auto [a, b] : matches)
      lay(between(hosts[static_cast<std::size_t>(a)], hosts[static_cast<std::size_t>(b)]), first,
          &rounds);
  }
  return rounds;
}

}  // namespace weft::health
