// SPDX-License-Identifier: Apache-2.0
// Plans for any fabric: proved, and as fast as its links allow where cores and memory take no time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "../slow_build.h"
#include "fabric_job.h"
#include "random_fabric.h"
#include "schedule/registry.h"
#include "sim/bound.h"
#include "sim/wiring.h"
#include "verify/verify.h"

namespace weft::sim {
namespace {

using enum schedule::Collective;

constexpr double kMiB = 1 << 20;
constexpr double kEnough = 0.98;

Network readNetwork(const char* name, const std::vector<Change>& changes = {}) {
  const std::string folder = std::filesystem::path(__FILE__).parent_path() / "../../..";
  topology::Fabric fabric;
  Network network;
  EXPECT_TRUE(topology::readFabric(folder + "/examples/topologies/" + name, &fabric).ok());
  EXPECT_TRUE(Network::make(fabric, changes, 0, &network).ok());
  return network;
}

Network torus() {
  std::string lines = "nodes 1 ranks 16\n";
  for (std::uint32_t a = 0; a < 16; ++a)
    for (const std::uint32_t b : {a / 4 * 4 + (a + 1) % 4, (a + 4) % 16})
      lines += "mesh " + std::to_string(std::min(a, b)) + "-" + std::to_string(std::max(a, b)) +
               " gbit 100 us 3\n";
  return networkOf(lines);
}

// A fabric whose ranks know its links.
class Planted {
 public:
  explicit Planted(const Network& network) : job_(network, idealMachine()) {
    grown_ = forest::Links::makeSome(graphOf(network), {.messageNs = 0}, &some_);
    if (!grown_.ok()) return;
    job_.tuning().costs.arenaBytes = std::size_t{network.ranks()} << 22;
    job_.tuning().links = some_.front();
  }

  bool isConnected() const { return grown_.ok(); }
  const forest::Forest& trees() { return some_.front()->fromAll; }

  Status prove(schedule::Collective collective) {
    const schedule::Algorithm& forest = *schedule::findAlgorithm(collective, "forest");
    Status proved;
    along([&] {
      const schedule::Shape shape = plan::shapeOf(job_.tuning(), job_.network().ranks() / 2);
      proved = verify::verify(forest.make(shape), {.order = forest.order});
      return proved.ok();
    });
    return proved;
  }

  schedule::Program program(schedule::Collective collective, std::uint32_t rank) {
    const schedule::Algorithm& forest = *schedule::findAlgorithm(collective, "forest");
    return forest.make(plan::shapeOf(job_.tuning(), 0)).program(rank);
  }

  // When each rank sends its first message of a segment.
  std::vector<std::vector<Time>> begins(schedule::Collective collective, double mib) {
    std::vector<std::vector<Time>> first(job_.network().ranks());
    job_.setting().observe = [&](const Span& span) {
      if (!span.isMessage) return;
      std::vector<Time>& times = first[span.rank];
      times.resize(std::max<std::size_t>(times.size(), span.segment + 1), kNever);
      times[span.segment] = std::min(times[span.segment], span.begin);
    };
    share(collective, mib);
    job_.setting().observe = nullptr;
    return first;
  }

  // The least that links allow, as a share of the time that it takes.
  double share(schedule::Collective collective, double mib) {
    const std::uint32_t ranks = job_.network().ranks();
    const bool isVector = collective == AllReduce;
    const auto count = static_cast<std::uint64_t>(mib * kMiB / 4 / (isVector ? 1 : ranks));
    const double ns = job_.ns(callOf(collective, count, "forest"));
    const double least = mib * kMiB / ranks / trees().bestRate * (isVector ? 2 : 1);
    return least / ns;
  }
  // Along the best of the trees that there are; the first that come to `enough` will do.
  double bestShare(schedule::Collective collective, double mib, double enough) {
    double best = 0;
    along([&] {
      best = std::max(best, share(collective, mib));
      return best < enough;
    });
    return best;
  }

 private:
  // One after the other, while `goesOn` says so.
  template <class GoesOn>
  void along(const GoesOn& goesOn) {
    for (const auto& links : some_) {
      job_.tuning().links = links;
      if (!goesOn()) break;
    }
    job_.tuning().links = some_.front();
  }

  std::vector<std::shared_ptr<const forest::Links>> some_;
  FabricJob job_;
  Status grown_;
};

void expectProved(Planted* planted, const char* name) {
  for (const schedule::Collective c : {AllGather, ReduceScatter, AllReduce, Broadcast, Reduce}) {
    const Status status = planted->prove(c);
    EXPECT_TRUE(status.ok()) << name << ": " << status.text();
  }
}

void expectShare(const char* name, const Network& network, double least) {
  Planted planted(network);
  ASSERT_TRUE(planted.isConnected()) << name;
  expectProved(&planted, name);
  std::printf("%-24s %u parts, %zu trees, %.2f %% lost by rounding; share of the flow bound:", name,
              planted.trees().parts, planted.trees().trees.size(), 100 * planted.trees().lost());
  for (const schedule::Collective c : {AllGather, ReduceScatter, AllReduce}) {
    const double share = planted.bestShare(c, test::kSlowBuild ? 16 : 256, kEnough);
    std::printf(" %s %.1f %%", schedule::nameOf(c), 100 * share);
    EXPECT_GE(share, test::kSlowBuild ? 0 : least) << name << ", " << schedule::nameOf(c);
  }
  std::printf("\n");
}

// ./dev soak fabrics asks for all machines and 200 random fabrics.
const char* asked() { return std::getenv("SIM_TEST_FABRICS"); }

TEST(Forest, OfPublishedMachines) {
  if (test::kSlowBuild) GTEST_SKIP() << "the others do";
  expectShare("p4d x 2", readNetwork("p4d.24xlarge.topo"), 0.98);
  if (asked() == nullptr) return;
  expectShare("dl1 x 4", readNetwork("dl1.24xlarge.topo"), 0.98);
  expectShare("dl1 x 4, a dead cable", readNetwork("dl1.24xlarge.topo", {{0, "2-3", 0}}), 0.98);
  expectShare("dl1 x 4, a dead NIC", readNetwork("dl1.24xlarge.topo", {{1, "efa2", 0}}), 0.98);
  expectShare("trn1 x 2", readNetwork("trn1.32xlarge.topo"), 0.95);
}

TEST(Forest, SegmentsSetOutOneAfterTheOther) {
  if (test::kSlowBuild) GTEST_SKIP() << "twelve seconds under a sanitizer";
  Planted planted(torus());
  for (const schedule::Collective c : {AllGather, ReduceScatter, AllReduce})
    for (const std::vector<Time>& begins : planted.begins(c, 256)) {
      ASSERT_GT(begins.size(), 4u) << schedule::nameOf(c);
      EXPECT_EQ(begins[0], 0);
      for (std::size_t s = 1; s < begins.size(); ++s) EXPECT_GT(begins[s], begins[s - 1]);
    }
}

// Were one of them late, the sums that others wait for would be.
TEST(Forest, SumsThatARankKeepsAreMadeLast) {
  const RandomFabric fabric(50);
  Planted planted(fabric.network());
  for (std::uint32_t rank = 0; rank < fabric.network().ranks(); ++rank) {
    const schedule::Program program = planted.program(ReduceScatter, rank);
    const auto keeps = [](const schedule::Op& op) { return op.dst.buf == schedule::Buf::Out; };
    const auto puts = [](const schedule::Op& op) { return op.kind == schedule::OpKind::Put; };
    const auto kept = std::ranges::find_if(program.ops, keeps);
    ASSERT_NE(kept, program.ops.end());
    EXPECT_TRUE(std::none_of(kept, program.ops.end(), puts)) << "rank " << rank;
  }
  EXPECT_GE(planted.share(ReduceScatter, test::kSlowBuild ? 16 : 256), test::kSlowBuild ? 0 : 0.99);
}

// A quarter of a program that ends with them would be later than a quarter of what others wait for.
TEST(Forest, SumsThatARankKeepsHoldUpNoSegment) {
  if (test::kSlowBuild) GTEST_SKIP() << "the others do";
  EXPECT_GE(Planted(RandomFabric(170).network()).share(ReduceScatter, 256), 0.99);
}

// Six ranks, each on a port of its own, of which the slow ones are full.
TEST(Forest, NobodyIsLateAtAFullPort) {
  if (test::kSlowBuild) GTEST_SKIP() << "the others do";
  Planted planted(RandomFabric(39).network());
  for (const schedule::Collective c : {AllGather, ReduceScatter})
    EXPECT_GE(planted.share(c, 256), 0.98) << schedule::nameOf(c);
}

// Pairs of ranks share its ports otherwise then, which no count of what they carry foretells.
TEST(Forest, TreesOfMorePartsMayBeQuicker) {
  if (test::kSlowBuild) GTEST_SKIP() << "the others do";
  Planted planted(RandomFabric(103).network());
  for (const schedule::Collective c : {AllGather, ReduceScatter})
    EXPECT_GE(planted.bestShare(c, 256, kEnough), 0.99) << schedule::nameOf(c);
}

TEST(Forest, OfATorus) {
  if (test::kSlowBuild) GTEST_SKIP() << "the others do";
  expectShare("4 x 4 torus", torus(), 0.98);
}

TEST(Forest, OfRandomFabrics) {
  const int fabrics = asked() != nullptr ? std::atoi(asked()) : test::kSlowBuild ? 1 : 4;
  constexpr unsigned kOfSixRanks = 39;  // the first takes minutes under a sanitizer
  std::vector<double> shares;
  for (unsigned seed = test::kSlowBuild ? kOfSixRanks : 0;
       shares.size() < 2 * static_cast<std::size_t>(fabrics); ++seed) {
    const RandomFabric fabric(seed);
    Planted planted(fabric.network());
    if (!planted.isConnected()) continue;
    expectProved(&planted, ("random " + std::to_string(seed)).c_str());
    std::printf("fabric %u: %.1f %% lost", seed, 100 * planted.trees().lost());
    EXPECT_LE(planted.trees().lost(), 0.01);
    for (const schedule::Collective c : {AllGather, ReduceScatter}) {
      shares.push_back(planted.bestShare(c, test::kSlowBuild ? 16 : 256, kEnough));
      std::printf(", %s %.1f %%", schedule::nameOf(c), 100 * shares.back());
      EXPECT_LE(shares.back(), 1 + 1e-9);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::ranges::sort(shares);
  const auto from = [&](double share) {
    return shares.end() - std::ranges::lower_bound(shares, share);
  };
  std::printf(
      "%zu times: %td from 98 %% on, %td from 95 %%, %td from 90 %%; median %.1f %%, least %.1f "
      "%%\n",
      shares.size(), from(0.98), from(0.95), from(0.9), 100 * shares[shares.size() / 2],
      100 * shares[0]);
  EXPECT_GT(shares[0], 0.3);
}

}  // namespace
}  // namespace weft::sim
