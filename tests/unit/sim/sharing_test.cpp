// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <map>
#include <random>
#include <ranges>

#include "../slow_build.h"

namespace weft::sim {
namespace {

using Uses = std::vector<Use>;

// Starts what is asked for, and says when each ended.
class Flows {
 public:
  explicit Flows(const std::vector<double>& rates) : sharing(rates) {}

  std::map<std::uint64_t, double> ends() {
    std::map<std::uint64_t, double> all;
    sharing.settle(now);
    while (sharing.nextEnd() != kNever) {
      now = sharing.nextEnd();
      for (const std::uint64_t cookie : sharing.finish(now)) all[cookie] = nsOf(now);
      sharing.settle(now);
    }
    return all;
  }

  Sharing sharing;
  Time now = 0;
};

TEST(Sharing, OneHasAllOfALink) {
  Flows run({10});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}}), 1000, 7, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{7, 100}}));
}

// Both at 5 until the shorter is through, then the longer at 10.
TEST(Sharing, TwoOnALinkHaveHalfEach) {
  for (const bool oneChannel : {true, false}) {
    Flows run({10});
    const std::uint32_t a = run.sharing.addChannel(Uses{{0, 1}});
    const std::uint32_t b = oneChannel ? a : run.sharing.addChannel(Uses{{0, 1}});
    run.sharing.start(a, 1000, 1, 0);
    run.sharing.start(b, 3000, 2, 0);
    EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 200}, {2, 400}}));
    EXPECT_EQ(run.sharing.carried(0), 4000);
  }
}

// The textbook's: A and B on link 0, B and C on link 1. B has 2 of link 0's 4, and C the rest of 10.
TEST(Sharing, IsMaxMinFair) {
  Flows run({4, 10});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}}), 2000, 1, 0);
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}, {1, 1}}), 2000, 2, 0);
  run.sharing.start(run.sharing.addChannel(Uses{{1, 1}}), 8000, 3, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 1000}, {2, 1000}, {3, 1000}}));
}

TEST(Sharing, WhoComesLaterTakesFromThenOn) {
  Flows run({10});
  const std::uint32_t channel = run.sharing.addChannel(Uses{{0, 1}});
  run.sharing.start(channel, 1000, 1, 0);
  run.sharing.settle(0);
  run.sharing.start(channel, 1000, 2, timeOf(50));
  run.now = timeOf(50);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 150}, {2, 200}}));
}

// A sender's port that six messages leave by, into three ports that could take three times as much.
TEST(Sharing, TheFullestCounts) {
  Flows run({1, 1, 1, 1});
  for (const std::uint32_t in : {1u, 2u, 3u}) {
    const std::uint32_t channel = run.sharing.addChannel(Uses{{0, 1}, {in, 1}});
    run.sharing.start(channel, 1000, 10 * in, 0);
    run.sharing.start(channel, 1000, 10 * in + 1, 0);
  }
  for (const auto& [cookie, end] : run.ends()) EXPECT_NEAR(end, 6000, 1e-2) << cookie;
}

// A message over two rails of 4 and 2 needs two thirds of it on the first.
TEST(Sharing, WeightsAreParts) {
  Flows run({4, 2});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 2.0 / 3}, {1, 1.0 / 3}}), 600, 1, 0);
  EXPECT_NEAR(run.ends().at(1), 100, 1e-3);
}

// What one rank sends another: one by one, beside what others send.
TEST(Sharing, AQueueGoesOneByOne) {
  Flows run({10});
  const std::uint32_t channel = run.sharing.addChannel(Uses{{0, 1}});
  run.sharing.startInQueue(channel, 5, 1000, 1, 0);
  run.sharing.startInQueue(channel, 5, 1000, 2, 0);
  run.sharing.startInQueue(channel, 6, 1500, 3, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 200}, {2, 350}, {3, 300}}));
  EXPECT_EQ(run.sharing.carried(0), 3500);
}

TEST(Sharing, WhatSharesNothingIsLeftAlone) {
  Flows run({10, 10});
  run.sharing.start(run.sharing.addChannel(Uses{{0, 1}}), 1000, 1, 0);
  run.sharing.start(run.sharing.addChannel(Uses{{1, 1}}), 500, 2, 0);
  EXPECT_EQ(run.ends(), (std::map<std::uint64_t, double>{{1, 100}, {2, 50}}));
}

// As the channels of cores do, whose work moves memory or does not.
TEST(Sharing, UsesThatComeAndGoTakeNoMoreRoom) {
  if (test::kSlowBuild) GTEST_SKIP() << "a sanitizer's allocator does not count";
  const auto allocated = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  Sharing sharing({10, 10});
  const std::uint32_t channel = sharing.addChannel(Uses{{0, 1}, {1, 1}});
  const std::size_t before = allocated();
  for (int i = 0; i < 100'000; ++i)
    sharing.setUses(channel, i % 2 == 0 ? Uses{{0, 1}} : Uses{{0, 1}, {1, 1}});
  EXPECT_LT(allocated(), before + 100'000);
}

// ---- beside a model that finds all rates anew whenever anything changes

struct Flow {
  std::uint32_t channel = 0, queue = 0;
  double amount = 0;
  double begin = 0;  // ns
};

// Of each flow that is on its way. All rates rise together until a resource is full.
std::vector<double> fairRates(const std::vector<double>& rates, const std::vector<Uses>& on) {
  std::vector<double> left = rates, found(on.size(), -1);
  while (std::ranges::count(found, -1) > 0) {
    double level = 1e300;
    std::size_t full = 0;
    for (std::size_t r = 0; r < rates.size(); ++r) {
      double weight = 0;
      for (std::size_t i = 0; i < on.size(); ++i)
        for (const Use& use : on[i])
          if (found[i] < 0 && use.resource == r) weight += use.weight;
      if (weight > 0 && left[r] / weight < level) {
        level = left[r] / weight;
        full = r;
      }
    }
    for (std::size_t i = 0; i < on.size(); ++i) {
      if (found[i] >= 0 || std::ranges::count(on[i], full, &Use::resource) == 0) continue;
      found[i] = level;
      for (const Use& use : on[i])
        left[use.resource] = std::max(0.0, left[use.resource] - use.weight * level);
    }
  }
  return found;
}

// When each ends.
std::vector<double> endsOf(const std::vector<double>& rates, const std::vector<Uses>& channels,
                           const std::vector<Flow>& flows) {
  std::vector<double> ends(flows.size(), 0), left;
  for (const Flow& flow : flows) left.push_back(flow.amount);
  double now = 0;
  while (std::ranges::count(ends, 0) > 0) {
    std::vector<Uses> on;
    std::vector<std::size_t> which;
    double next = 1e300;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (flows[i].begin > now) next = std::min(next, flows[i].begin);
      const auto isBefore = [&](std::size_t k) {
        return ends[k] == 0 && flows[k].channel == flows[i].channel &&
               flows[k].queue == flows[i].queue;
      };
      const auto before = std::views::iota(std::size_t{0}, i);
      if (ends[i] != 0 || flows[i].begin > now || std::ranges::any_of(before, isBefore)) continue;
      on.push_back(channels[flows[i].channel]);
      which.push_back(i);
    }
    const std::vector<double> fair = fairRates(rates, on);
    for (std::size_t k = 0; k < which.size(); ++k)
      next = std::min(next, now + left[which[k]] / fair[k]);
    for (std::size_t k = 0; k < which.size(); ++k) {
      left[which[k]] -= fair[k] * (next - now);
      if (left[which[k]] < 1e-9 * flows[which[k]].amount) ends[which[k]] = next;
    }
    now = next;
  }
  return ends;
}

std::vector<double> endsBySharing(const std::vector<double>& rates,
                                  const std::vector<Uses>& channels,
                                  const std::vector<Flow>& flows) {
  Sharing sharing(rates);
  for (const Uses& uses : channels) sharing.addChannel(uses);
  std::vector<double> ends(flows.size(), 0);
  for (std::size_t next = 0; next < flows.size() || sharing.nextEnd() != kNever;) {
    const Time begin = next < flows.size() ? timeOf(flows[next].begin) : kNever;
    const Time now = std::min(begin, sharing.nextEnd());
    for (const std::uint64_t cookie : sharing.finish(now)) ends[cookie] = nsOf(now);
    for (; next < flows.size() && timeOf(flows[next].begin) == now; ++next)
      sharing.startInQueue(flows[next].channel,
                           std::uint64_t{flows[next].channel} << 32 | flows[next].queue,
                           flows[next].amount, next, now);
    sharing.settle(now);
  }
  return ends;
}

TEST(Sharing, OfRandomFlowsIsThatOfAllRatesFoundAnew) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t end) {
      return static_cast<std::uint32_t>(random() % end);
    };
    std::vector<double> rates(2 + below(8));
    for (double& rate : rates) rate = 1 + below(20);
    const bool hasManyQueues = seed % 3 == 0;
    std::vector<Uses> channels(1 + below(hasManyQueues ? 2 : 12));
    for (Uses& uses : channels)
      for (std::uint32_t r = 0; r < rates.size(); ++r)
        if (uses.empty() || below(3) == 0)
          uses.push_back({(r + seed) % std::uint32_t(rates.size()), 0.25 * (1 + below(6))});
    std::vector<Flow> flows(hasManyQueues ? 150 : 40);
    double begin = 0;
    for (Flow& flow : flows)
      flow = {below(std::uint32_t(channels.size())), below(hasManyQueues ? 60 : 4),
              100.0 * (1 + below(50)), begin += 10.0 * below(30) * (below(3) == 0 ? 1 : 0)};
    const std::vector<double> should = endsOf(rates, channels, flows),
                              are = endsBySharing(rates, channels, flows);
    for (std::size_t i = 0; i < flows.size(); ++i)
      ASSERT_NEAR(are[i], should[i], 0.1 + 1e-6 * should[i]) << "seed " << seed << ", flow " << i;
  }
}

}  // namespace
}  // namespace weft::sim
