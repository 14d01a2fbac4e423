// SPDX-License-Identifier: Apache-2.0
#include "tools/health/rounds.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace weft::health {
namespace {

// Every pair once; nobody twice in a round; no round both inside hosts and between them.
void expectProper(const std::vector<int>& hostOf) {
  const auto host = [&](int rank) { return hostOf[static_cast<std::size_t>(rank)]; };
  std::set<std::pair<int, int>> met;
  for (const Round& round : pairRounds(hostOf)) {
    std::set<int> busy;
    std::set<bool> kinds;
    for (const auto [a, b] : round) {
      EXPECT_LT(a, b);
      EXPECT_TRUE(met.emplace(a, b).second) << a << " and " << b << " met before";
      EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
      kinds.insert(host(a) == host(b));
    }
    EXPECT_LE(kinds.size(), 1u);
  }
  EXPECT_EQ(met.size(), hostOf.size() * (hostOf.size() - 1) / 2);
}

TEST(PairRounds, AreProperForAnyHosts) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<int> hostOf(1 + random() % 24);
    const auto hosts = static_cast<unsigned>(1 + random() % 6);
    for (int& host : hostOf) host = static_cast<int>(random() % hosts);
    for (unsigned host = 0; host < hosts; ++host) hostOf.push_back(static_cast<int>(host));
    expectProper(hostOf);
  }
}

TEST(PairRounds, HaveHalfOfTheRanksTalkAtOnce) {
  EXPECT_EQ(pairRounds(std::vector<int>(8)).size(), 7u);
  const std::vector<int> fourHostsOfTwo{0, 0, 1, 1, 2, 2, 3, 3};
  const auto rounds = pairRounds(fourHostsOfTwo);
  EXPECT_EQ(rounds.size(), 7u);
  for (const Round& round : rounds) EXPECT_EQ(round.size(), 4u);
  EXPECT_TRUE(pairRounds(std::vector<int>(1)).empty());
}

}  // namespace
}  // namespace weft::health
