// SPDX-License-Identifier: Apache-2.0
// Every collective against a direct computation: random shapes, types, operations, roots,
// alignments, algorithms and transports.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>

#include "checked_call.h"
#include "world.h"

namespace weft::testing {
namespace {

// A forced algorithm may not fit the communicator: that is said, and nothing happens.
bool isUnfit(const Case& c, weftResult_t result) {
  const std::string text = weftGetLastError(nullptr);
  return !c.algorithm.empty() && result == weftInvalidUsage &&
         (text.find("needs several nodes") != std::string::npos ||
          text.find("cannot write into its peers' buffers") != std::string::npos);
}

// Runs one case and compares. `ran` counts those that were not unfit.
std::string runCase(const Case& c, const Rank& r, int* ran) {
  CheckedCall checked(c, r);
  const weftResult_t result = checked.make();
  if (isUnfit(c, result)) return "";
  ++*ran;
  return result == weftSuccess ? checked.check() : outcome(result, r.comm);
}

class Collectives : public ::testing::TestWithParam<World> {};

TEST_P(Collectives, DeliverWhatADirectComputationDoes) {
  const World world = GetParam();
  const std::uint64_t seed = std::random_device()();
  const int cases = 1200 / (world.ranks + 2) / kSlowdown;
  const std::string failed = failures(world, [&](const Rank& r) -> std::string {
    std::mt19937_64 random(seed);
    int ran = 0;
    for (int i = 0; i < cases; ++i) {
      // Large ones are rare: the direct computation takes most of the time.
      const std::size_t most = i % 32 == 31 ? std::size_t{4 / kSlowdown} << 20 : 64 << 10;
      const Case c = randomCase(random, r.ranks, most);
      if (const std::string one = runCase(c, r, &ran); !one.empty())
        return "case " + std::to_string(i) + ", " + describe(c) + ": " + one;
    }
    return ran > cases / 2 ? "" : "too few cases ran: " + std::to_string(ran);
  });
  EXPECT_EQ(failed, "") << "seed " << seed;
}

std::string nameOfWorld(const ::testing::TestParamInfo<World>& p) {
  std::string transport = p.param.transport;
  std::erase_if(transport, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return nameOf(p.param.kind) + std::to_string(p.param.ranks) + transport;
}
INSTANTIATE_TEST_SUITE_P(
    Threads, Collectives,
    ::testing::Values(World{Kind::Threads, 1}, World{Kind::Threads, 2}, World{Kind::Threads, 3},
                      World{Kind::Threads, 4}, World{Kind::Threads, 5}, World{Kind::Threads, 8},
                      World{Kind::Threads, 2, "shm"}, World{Kind::Threads, 6, "shm"},
                      World{Kind::Threads, 3, "faulty:7"},
                      World{Kind::Threads, 4, "faulty:seed=3,hold=0.5,again=0.3,late=0.5"}),
    nameOfWorld);
INSTANTIATE_TEST_SUITE_P(Processes, Collectives,
                         ::testing::Values(World{Kind::Processes, 1}, World{Kind::Processes, 2},
                                           World{Kind::Processes, 3}, World{Kind::Processes, 4},
                                           World{Kind::Processes, 7}, World{Kind::Processes, 8},
                                           World{Kind::Processes, 2, "faulty:5"},
                                           World{Kind::Processes, 4,
                                                 "faulty:seed=3,hold=0.5,again=0.3,late=0.5"}),
                         nameOfWorld);

// Sums of arbitrary floats: the bits do not depend on who asks.
struct Bits {
  std::array<std::array<std::atomic<std::uint64_t>, 64>, 8> of;  // by rank, then by call
};
std::uint64_t hashOf(const std::vector<float>& values) {
  std::uint64_t hash = 14695981039346656037u;
  for (const float v : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &v, sizeof(bits));
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}
// All-reduces `count` random floats; the result's hash goes to bits.of[rank][call].
std::string sumBits(const Rank& r, std::size_t count, const char* algorithm, bool reproducible,
                    Bits& bits, std::size_t call) {
  std::mt19937_64 random(static_cast<std::uint64_t>(r.rank) + 99);
  std::vector<float> in(count), out(count);
  for (float& v : in) v = static_cast<float>(random()) * (random() % 2 ? 1e-9f : -1e3f);
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.algorithm = algorithm;
  opts.reproducible = reproducible;
  const weftResult_t result =
      weftAllReduce(in.data(), out.data(), count, weftFloat, weftSum, r.comm, nullptr, &opts);
  bits.of[static_cast<std::size_t>(r.rank)][call] = hashOf(out);
  return outcome(result, r.comm);
}

TEST_P(Collectives, AllRanksGetTheSameBits) {
  Shared<Bits> bits;
  const char* names[] = {nullptr, "one-shot", "mesh", "ring", "circulant", "recursive-doubling"};
  const std::string failed = failures(GetParam(), [&](const Rank& r) -> std::string {
    std::size_t call = 0;
    for (const std::size_t count : {1u, 7u, 1000u, 20001u})
      for (const char* name : names)
        if (const std::string one = sumBits(r, count, name, false, *bits, call++); !one.empty())
          return one;
    return "";
  });
  ASSERT_EQ(failed, "");
  for (int r = 1; r < GetParam().ranks; ++r)
    for (std::size_t i = 0; i < 20; ++i)
      EXPECT_EQ(bits->of[static_cast<std::size_t>(r)][i], bits->of[0][i]) << r << " call " << i;
}

TEST_P(Collectives, ReproducibleSumsDoNotDependOnTheAlgorithm) {
  Shared<Bits> bits;
  const char* names[] = {nullptr, "one-shot", "mesh", "mesh:staged"};
  const std::string failed = failures(GetParam(), [&](const Rank& r) -> std::string {
    std::size_t call = 0;
    for (const std::size_t count : {1u, 7u, 1000u, 20001u})
      for (const char* name : names)
        if (const std::string one = sumBits(r, count, name, true, *bits, call++); !one.empty())
          return one;
    std::vector<float> data(10);
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    opts.algorithm = "ring";
    opts.reproducible = 1;
    return weftAllReduce(data.data(), data.data(), 10, weftFloat, weftSum, r.comm, nullptr,
                         &opts) == weftInvalidUsage
               ? ""
               : "ring claims to be reproducible";
  });
  ASSERT_EQ(failed, "");
  for (int r = 0; r < GetParam().ranks; ++r)
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_EQ(bits->of[static_cast<std::size_t>(r)][i], bits->of[0][i / 4 * 4]) << r << ' ' << i;
}

// Each rank says something else of where nothing lies.
TEST(Uneven, AnEmptyBlockLiesAnywhere) {
  for (const std::size_t gap : {0u, 5u}) {
    const std::string failed = failures({Kind::Threads, 3}, [&](const Rank& r) -> std::string {
      const std::size_t counts[] = {0, 3, 2};
      const std::size_t displs[] = {SIZE_MAX - static_cast<std::size_t>(r.rank), 0, 3 + gap};
      std::vector<float> mine(3, static_cast<float>(r.rank)), all(10, -1);
      const std::string text = outcome(weftAllGatherV(mine.data(), all.data(), counts, displs,
                                                      weftFloat, r.comm, nullptr, nullptr),
                                       r.comm);
      std::vector<float> wanted(10, -1);
      std::fill_n(wanted.begin(), 3, 1.0f);
      std::fill_n(wanted.begin() + 3 + static_cast<std::ptrdiff_t>(gap), 2, 2.0f);
      return text.empty() && all != wanted ? "wrong blocks" : text;
    });
    EXPECT_EQ(failed, "");
  }
}

}  // namespace
}  // namespace weft::testing
