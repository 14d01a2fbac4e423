// SPDX-License-Identifier: Apache-2.0
// Planted faults in made-up measurements, with noise: the culprit is found, and nobody else.
#include "tools/health/blame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weft::health {
namespace {

class Job {
 public:
  Job(int hosts, int each, std::uint64_t seed) : matrix(hosts * each), random_(seed) {
    const int ranks = hosts * each;
    for (int rank = 0; rank < ranks; ++rank)
      members.push_back({"node" + std::to_string(rank / each), rank / each, rank % each, 1});
    ways.resize(members.size() * members.size(), "wire");
    std::normal_distribution<double> noise(0, 0.08);
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from == to) continue;
        const bool between = from / each != to / each;
        matrix.at(from, to).gigabytes = (between ? 0.05 : 4) * std::exp(noise(random_));
        matrix.at(from, to).microseconds = matrix.at(to, from).microseconds =
            (between ? 60 : 8) * std::exp(2 * std::abs(noise(random_)));
      }
    }
  }

  template <class Chosen>
  void slow(double factor, const Chosen& chosen) {
    for (int from = 0; from < matrix.ranks(); ++from)
      for (int to = 0; to < matrix.ranks(); ++to)
        if (from != to && chosen(from, to)) matrix.at(from, to).gigabytes /= factor;
  }

  void delay(double microseconds, int a, int b) {
    matrix.at(a, b).microseconds += microseconds;
    matrix.at(b, a).microseconds += microseconds;
  }

  std::vector<Suspect> suspects() const { return findSuspects(matrix, members, ways); }

  std::vector<Member> members;
  Ways ways;
  Matrix matrix;

 private:
  std::mt19937_64 random_;
};

TEST(Blame, AccusesNobodyOfAHealthyJob) {
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    for (const auto& [hosts, each] :
         {std::pair{1, 2}, {1, 4}, {1, 8}, {2, 1}, {3, 2}, {4, 2}, {8, 4}})
      EXPECT_TRUE(Job(hosts, each, seed).suspects().empty()) << hosts << " x " << each;
}

TEST(Blame, FindsASlowHost) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const int bad = static_cast<int>(seed % 4);
    Job job(4, 2, seed);
    job.slow(4, [&](int from, int to) {
      return (from / 2 == bad) != (to / 2 == bad);  // its cable, both ways
    });
    const auto suspects = job.suspects();
    ASSERT_EQ(suspects.size(), 1u);
    EXPECT_EQ(suspects[0].scope, Scope::Host);
    EXPECT_EQ(suspects[0].culprit, bad);
    EXPECT_FALSE(suspects[0].memory);
    EXPECT_NEAR(suspects[0].ratio(), 4, 1.5);
  }
}

TEST(Blame, FindsAHostThatOnlySendsSlowly) {
  Job job(4, 2, 1);
  job.slow(4, [](int from, int to) { return from / 2 == 2 && to / 2 != 2; });
  const auto suspects = job.suspects();
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].scope, Scope::Host);
  EXPECT_EQ(suspects[0].culprit, 2);
  EXPECT_EQ(suspects[0].from / 2, 2);
}

TEST(Blame, FindsASlowRank) {
  for (const int ranks : {3, 4, 8}) {
    Job job(1, ranks, 5);
    job.slow(3, [](int from, int to) { return from == 1 || to == 1; });
    const auto suspects = job.suspects();
    ASSERT_EQ(suspects.size(), 1u) << ranks;
    EXPECT_EQ(suspects[0].scope, Scope::Rank);
    EXPECT_EQ(suspects[0].culprit, 1);
  }
}

TEST(Blame, FindsALinkOneWayAndItsReference) {
  for (const int ranks : {3, 4, 8}) {
    Job job(1, ranks, 6);
    job.slow(5, [](int from, int to) { return from == 2 && to == 0; });
    const auto suspects = job.suspects();
    ASSERT_EQ(suspects.size(), 1u) << ranks;
    EXPECT_EQ(suspects[0].scope, Scope::Link);
    EXPECT_EQ(suspects[0].from, 2);
    EXPECT_EQ(suspects[0].to, 0);
    EXPECT_FALSE(suspects[0].usualFrom == 2 && suspects[0].usualTo == 0);
  }
}

TEST(Blame, FindsADelayedLink) {
  for (const int ranks : {3, 4, 8}) {
    for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) {
      Job job(1, ranks, 7);
      job.delay(2000, a, b);
      const auto suspects = job.suspects();
      ASSERT_EQ(suspects.size(), 1u) << ranks;
      EXPECT_EQ(suspects[0].scope, Scope::Link);
      EXPECT_EQ(suspects[0].measure, Measure::Latency);
      EXPECT_EQ(suspects[0].from, a);
      EXPECT_EQ(suspects[0].to, b);
    }
  }
}

TEST(Blame, FindsAHostAndALinkElsewhere) {
  Job job(6, 2, 8);
  job.slow(4, [](int from, int to) { return (from / 2 == 5) != (to / 2 == 5); });
  job.slow(6, [](int from, int to) { return from == 0 && to == 7; });
  const auto suspects = job.suspects();
  ASSERT_EQ(suspects.size(), 2u);
  EXPECT_EQ(suspects[0].scope, Scope::Host);
  EXPECT_EQ(suspects[0].culprit, 5);
  EXPECT_EQ(suspects[1].scope, Scope::Link);
  EXPECT_EQ(suspects[1].from, 0);
  EXPECT_EQ(suspects[1].to, 7);
}

TEST(Blame, DoesNotCompareLinksOfDifferentKinds) {
  Job job(1, 6, 9);
  for (int peer = 1; peer < 6;
       ++peer) {  // rank 0 goes another, slower way, as a recovered communicator does
    job.ways[static_cast<std::size_t>(peer)] = job.ways[static_cast<std::size_t>(peer) * 6] = "tcp";
    job.matrix.at(0, peer).gigabytes = job.matrix.at(peer, 0).gigabytes = 0.4;
  }
  EXPECT_TRUE(job.suspects().empty());
}

TEST(Blame, ToleratesMoreOfMemory) {
  Job job(1, 4, 10);
  job.slow(3, [](int from, int to) { return from == 2 && to == 0; });
  EXPECT_EQ(job.suspects().size(), 1u);
  job.ways.assign(job.ways.size(), "shm");
  EXPECT_TRUE(job.suspects().empty());
  job.slow(4, [](int from, int to) { return from == 2 && to == 0; });
  EXPECT_EQ(job.suspects().size(), 1u);
}

}  // namespace
}  // namespace weft::health
