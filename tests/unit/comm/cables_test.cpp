// SPDX-License-Identifier: Apache-2.0
// A mesh that has lost a cable: its trees, how its ways are timed, what is chosen by that.
#include "comm/cables.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "comm/layout.h"
#include "comm/thread_exchange.h"
#include "plan/decide.h"
#include "tests/unit/plan/sample_machine.h"
#include "transports/gather.h"
#include "transports/local/local.h"

namespace weft::comm {
namespace {

constexpr std::uint32_t kCards = 4;
constexpr int kEnoughMs = 60000;

Core::Basis basisOfCard(std::uint32_t rank, const std::string& wanted,
                        const std::vector<RankPair>& lost) {
  Core::Basis basis;
  basis.rank = rank;
  basis.ranks = kCards;
  for (std::uint32_t r = 0; r < kCards; ++r)
    basis.names.emplace_back(static_cast<int>(r), "here", 1, "here");
  basis.selection.wanted = wanted;
  for (const RankPair& pair : lost) basis.selection.lost[pair] = 1;
  basis.tuning.ranks = kCards;
  basis.tuning.nodes.assign(kCards, 0);
  return basis;
}

plan::Tuning planted(const std::string& wanted, const std::vector<RankPair>& lost) {
  Core::Basis basis = basisOfCard(0, wanted, lost);
  settleTrees(basis, &basis.tuning);
  return basis.tuning;
}

TEST(Cables, TreesGrowWhereAMeshHasLostOne) {
  EXPECT_EQ(planted("verbs", {}).links, nullptr);
  EXPECT_EQ(planted("auto", {{0, 1}}).links, nullptr);
  EXPECT_EQ(planted("shm+verbs", {{0, 1}}).links, nullptr);
  EXPECT_EQ(planted("verbs", {{0, 1}, {0, 2}, {0, 3}}).links, nullptr);  // 0 is on none
  const plan::Tuning tuning = planted("verbs", {{0, 1}});
  ASSERT_NE(tuning.links, nullptr);
  for (const forest::Tree& tree : tuning.links->fromAll.trees)
    for (const forest::Tree::Edge& edge : tree.edges) EXPECT_NE(edge.from + edge.to, 1u);
}

// What one rank has when all have timed their ways.
struct Timed {
  Status status;
  plan::Tuning tuning;
  bool isClean = true;  // its arrival slots
};

// Passes puts on until it has taken so many; those to a peer answer from then on that the link is down.
class Fragile final : public transport::Transport {
 public:
  Fragile(std::unique_ptr<transport::Transport> base, int puts)
      : base_(std::move(base)), left_(puts) {}
  const char* name() const override { return "fragile"; }
  transport::Caps caps() const override { return base_->caps(); }
  const transport::WindowLayout& layout() const override { return base_->layout(); }
  transport::WindowView own() const override { return base_->own(); }
  transport::ControlPage* control(std::uint32_t peer) const override {
    return base_->control(peer);
  }
  Status commit(std::uint32_t rank, std::size_t from, std::size_t bytes) override {
    return base_->commit(rank, from, bytes);
  }
  transport::PutResult put(const transport::Put& put) override {
    return left_-- > 0 ? base_->put(put) : transport::PutResult::Failed;
  }
  int poll(transport::Event* out, int max) override { return base_->poll(out, max); }
  std::size_t outstanding() const override { return base_->outstanding(); }
  void sever(std::uint32_t peer) override { base_->sever(peer); }
  const Status& lastError() const override { return base_->lastError(); }

 private:
  const std::unique_ptr<transport::Transport> base_;
  int left_;
};

void timeRank(ThreadExchange& meeting, std::uint32_t rank, std::optional<int> puts, int ms,
              Timed* timed) {
  Core::Parts parts;
  static_cast<Core::Basis&>(parts) = basisOfCard(rank, "verbs", {{0, 1}});
  settleTrees(parts, &parts.tuning);
  transport::TransportSetup setup;
  setup.rank = rank;
  setup.ranks = kCards;
  setup.names = parts.names;
  setup.exchange = [&](std::span<const std::byte> mine, auto* all) {
    return meeting.gather(rank, mine, all);
  };
  timed->status = layoutFor(parts.tuning, true, &setup.layout);
  if (timed->status.ok()) timed->status = local::makeLocal(setup, &parts.transport);
  if (!timed->status.ok()) return;
  if (puts) parts.transport = std::make_unique<Fragile>(std::move(parts.transport), *puts);
  timed->status = timeCables(setup, Deadline::in(ms), &parts);
  timed->tuning = parts.tuning;
  for (std::uint32_t slot = 0; slot < setup.layout.arrivalSlots; ++slot)
    timed->isClean = timed->isClean && parts.transport->own().arrivals()[slot].flag == 0;
  (void)transport::agree(setup, {});  // whoever is still looking at my window
}

// `puts`: of the last rank.
std::vector<Timed> timeAll(std::optional<int> puts, int ms) {
  std::vector<Timed> all(kCards);
  ThreadExchange meeting(kCards, Deadline::in(kEnoughMs));
  std::vector<std::thread> ranks;
  for (std::uint32_t r = 0; r < kCards; ++r)
    ranks.emplace_back(
        [&, r] { timeRank(meeting, r, r + 1 == kCards ? puts : std::nullopt, ms, &all[r]); });
  for (std::thread& rank : ranks) rank.join();
  return all;
}

TEST(Cables, AllRanksHaveTheSameTimesAndCleanWindows) {
  const std::vector<Timed> all = timeAll({}, kEnoughMs);
  for (const Timed& one : all) {
    ASSERT_TRUE(one.status.ok()) << one.status.text();
    ASSERT_TRUE(one.tuning.costs.cables && one.tuning.links);
    EXPECT_EQ(one.tuning.costs.cables->bytesPerNs, all[0].tuning.costs.cables->bytesPerNs);
    EXPECT_TRUE(one.isClean);
  }
  const plan::Cables& cables = *all[0].tuning.costs.cables;
  EXPECT_EQ(cables.between(0, 2), cables.between(3, 1));
  EXPECT_GT(cables.between(0, 1), 0);
}

TEST(Cables, ALinkThatIsLostMeanwhileIsNobodysError) {
  for (const int puts : {0, 3}) {
    for (const Timed& one : timeAll(puts, 400)) {
      EXPECT_TRUE(one.status.ok()) << one.status.text();
      EXPECT_EQ(one.tuning.links, nullptr);
      EXPECT_FALSE(one.tuning.costs.cables);
    }
  }
}

// By what the way around the lost cable carries, the others carrying 10 bytes a nanosecond.
std::string chosen(double around, const char* algorithm = "", bool reproducible = false) {
  plan::Tuning tuning = planted("verbs", {{0, 1}});
  tuning.costs = plan::sampleCosts(kCards);
  tuning.costs.arenaBytes = tuning.costs.stagingBytes = std::size_t{kCards} << 22;
  plan::Cables cables;
  cables.places = {0, 1, 2, 3};
  cables.mostPlaces = kCards;
  cables.latencyNs = 5e3;
  for (std::uint32_t a = 0; a < kCards; ++a)
    for (std::uint32_t b = 0; b < kCards; ++b)
      cables.bytesPerNs.push_back(a == b ? 0 : a + b == 1 ? around : 10);
  tuning.costs.cables = cables;
  plan::Call call;
  call.collective = schedule::Collective::AllReduce;
  call.count = 4 << 20;
  call.type = reduce::DType::F32;
  call.algorithm = algorithm;
  call.reproducible = reproducible;
  plan::Decision decision;
  const Status status = plan::decide(call, tuning, &decision);
  return status.ok() ? decision.schedule.name : status.text();
}

TEST(Cables, TreesAreChosenWhereTheWayAroundIsSlow) {
  EXPECT_EQ(chosen(1), "all-reduce forest+staged");
  EXPECT_EQ(chosen(10), "all-reduce mesh+staged");
  EXPECT_EQ(chosen(1, "mesh"), "all-reduce mesh+staged");
  EXPECT_EQ(chosen(1, "", true), "all-reduce mesh+staged");  // which adds in rank order
}

}  // namespace
}  // namespace weft::comm
