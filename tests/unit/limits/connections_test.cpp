// SPDX-License-Identifier: Apache-2.0
// A whole job over verbs, without devices: its ranks' plans, and the handshakes of what they write.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "../plan/sample_machine.h"
#include "perf/limits/limits.h"
#include "transports/verbs/handshake.h"

namespace weft::tools {
namespace {

using verbs::Endpoint;
using verbs::Handshakes;
using verbs::Word;

constexpr std::uint32_t kRanks = 1024, kHost = 8, kRails = 8;

class Fleet {
 public:
  Fleet() {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      ranks_.push_back(std::make_unique<Rank>(*this, rank));
  }

  // As many writes as there are rails, so that each is used.
  void write(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t rail = 0; rail < kRails; ++rail)
      ranks_[from]->handshakes.want(to * kRails + rail, {});
  }
  void deliver() {
    for (; !post_.empty(); post_.pop_front()) {
      const Letter& letter = post_.front();
      ranks_[letter.to]->handshakes.take(letter.edge, letter.word);
    }
  }
  std::size_t queuePairsOf(std::uint32_t rank) const { return ranks_[rank]->made; }
  std::size_t readyOf(std::uint32_t rank) const { return ranks_[rank]->readies; }

 private:
  struct Letter {
    std::uint32_t to;
    std::uint32_t edge;  // of the rank that it goes to
    Word word;
  };
  struct Rank : Handshakes::Ends {
    Rank(Fleet& in, std::uint32_t self) : fleet(in), id(self), handshakes(*this, 1000) {}
    Status make(std::uint32_t edge, Endpoint* mine) override {
      ++made;
      *mine = {edge + 2, id};
      return {};
    }
    Status join(std::uint32_t edge, const Endpoint& theirs) override {
      EXPECT_EQ(theirs, (Endpoint{id * kRails + edge % kRails + 2, edge / kRails}));
      return {};
    }
    void say(std::uint32_t edge, const Word& word) override {
      fleet.post_.push_back({edge / kRails, id * kRails + edge % kRails, word});
    }
    void ready(std::uint32_t) override { ++readies; }
    void fail(std::uint32_t, const std::string& why) override { FAIL() << why; }

    Fleet& fleet;
    const std::uint32_t id;
    std::size_t made = 0, readies = 0;
    Handshakes handshakes;
  };

  std::vector<std::unique_ptr<Rank>> ranks_;
  std::deque<Letter> post_;
};

class Connections : public testing::TestWithParam<schedule::Collective> {};
INSTANTIATE_TEST_SUITE_P(Of, Connections,
                         testing::Values(schedule::Collective::Barrier,
                                         schedule::Collective::AllReduce),
                         [](const auto& of) {
                           return of.param == schedule::Collective::Barrier ? "Barrier"
                                                                            : "AllReduce";
                         });

// Of 8,128 edges that a rank of 128 hosts of 8 with 8 rails has.
TEST_P(Connections, AreThoseThatThePlansOfAThousandRanksUse) {
  const Job job(kRanks, kHost, plan::sampleMachine());
  ASSERT_TRUE(job.fits().ok()) << job.fits().text();
  Fleet fleet;
  std::vector<std::size_t> peers;
  const plan::Call call = callOf(GetParam(), kRanks, kShortBytes);
  plan::Decision decision;
  ASSERT_TRUE(job.decide(call, &decision).ok());
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    std::unique_ptr<plan::Plan> plan;
    ASSERT_TRUE(job.plan(call, decision, rank, &plan).ok());
    peers.push_back(job.farPeersOf(*plan, rank).size());
    for (const std::uint32_t peer : job.farTargetsOf(*plan, rank)) fleet.write(rank, peer);
  }
  fleet.deliver();
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(fleet.queuePairsOf(rank), kRails * peers[rank]) << "rank " << rank;
    ASSERT_EQ(fleet.readyOf(rank), kRails * peers[rank]) << "rank " << rank;
    ASSERT_LE(peers[rank], 20u) << "rank " << rank;
  }
}

TEST(QueuePairs, HaveARowForEachNumberOfRanks) {
  const std::string table = queuePairsOf({8, 64, 65536}, 8, plan::sampleMachine());
  EXPECT_NE(table.find("| barrier | all-reduce |"), std::string::npos) << table;
  EXPECT_NE(table.find("| 8 | 0, 0 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| 64 | 8, 8 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| 65536 | none |"), std::string::npos) << table;
}

// Only calls in which a rank exchanges a block with each other one connect it to all of them.
TEST(QueuePairs, AreFewForSumsOfThousandsOfRanks) {
  const Job job(4096, 8, plan::sampleMachine());
  for (const std::size_t bytes : {kShortBytes, kLongBytes}) {
    const plan::Call call = callOf(schedule::Collective::AllReduce, 4096, bytes);
    plan::Decision decision;
    ASSERT_TRUE(job.decide(call, &decision).ok());
    for (const std::uint32_t rank : {0u, 1u, 2048u}) {
      std::unique_ptr<plan::Plan> plan;
      ASSERT_TRUE(job.plan(call, decision, rank, &plan).ok());
      EXPECT_LE(job.farPeersOf(*plan, rank).size(), 24u) << plan->algorithm << ", rank " << rank;
    }
  }
}

}  // namespace
}  // namespace weft::tools
