// SPDX-License-Identifier: Apache-2.0
// The batches of uneven calls, matched as Pairs does (the k-th send of a pair and direction with the
// k-th receive), on random counts and places: every element arrives where the call says. That the
// schedules behind them are right for all ranks and roots is proved in unit.schedule.
#include "engine/exchange.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace weft::engine {
namespace {

using schedule::Collective;

// One rank's buffers, and its blocks in them.
struct Ends {
  std::vector<std::size_t> sent, sentAt, received, receivedAt;
  std::vector<int> in, out;
};

void place(std::mt19937& random, const std::vector<std::size_t>& counts,
           std::vector<std::size_t>* displs, std::vector<int>* buffer) {
  std::size_t at = 0;
  displs->assign(counts.size(), 0);
  for (std::size_t k = counts.size(); k-- > 0; at += counts[k] + random() % 3) (*displs)[k] = at;
  buffer->assign(at + 1, -1);
}

class World {
 public:
  World(std::mt19937& random, Collective collective, std::uint32_t ranks)
      : collective_(collective),
        root_(static_cast<std::uint32_t>(random() % ranks)),
        ends_(ranks),
        lengths_(ranks, std::vector<std::size_t>(ranks)) {
    for (auto& row : lengths_)
      for (std::size_t& n : row) n = random() % 4 == 0 ? 0 : random() % 9;
    for (std::uint32_t r = 0; r < ranks; ++r) fill(random, r);
  }

  void exchange() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<PairOp>> sends, receives;
    for (std::uint32_t r = 0; r < ends_.size(); ++r)
      for (const PairOp& op : batchOf(callOf(r)))
        (op.isSend ? sends[{r, op.peer}] : receives[{op.peer, r}]).push_back(op);
    ASSERT_EQ(sends.size(), receives.size());
    for (const auto& [pair, ops] : sends) {
      ASSERT_EQ(ops.size(), 1u);
      ASSERT_EQ(receives[pair].size(), 1u);
      ASSERT_EQ(receives[pair][0].count, ops[0].count);
      std::copy_n(reinterpret_cast<const int*>(ops[0].data), ops[0].count,
                  reinterpret_cast<int*>(receives[pair][0].data));
    }
  }

  void check() const {
    for (std::uint32_t r = 0; r < ends_.size(); ++r)
      for (std::size_t k = 0; k < ends_[r].received.size(); ++k)
        for (std::size_t i = 0; i < ends_[r].received[k]; ++i)
          EXPECT_EQ(ends_[r].out[ends_[r].receivedAt[k] + i], valueOf(sourceOf(k), r, i));
  }

 private:
  static int valueOf(std::uint32_t from, std::uint32_t to, std::size_t i) {
    return static_cast<int>(from * 10000 + to * 100 + i);
  }
  std::uint32_t sourceOf(std::size_t slot) const {
    return collective_ == Collective::Scatter ? root_ : static_cast<std::uint32_t>(slot);
  }
  // The rank to which a rank's slot of In goes, and how long it is.
  std::uint32_t targetOf(std::size_t slot) const {
    return collective_ == Collective::Gather ? root_ : static_cast<std::uint32_t>(slot);
  }

  void fill(std::mt19937& random, std::uint32_t r) {
    Ends& e = ends_[r];
    if (schedule::hasIn(collective_, root_, r))
      for (std::uint32_t k = 0; k < (schedule::hasOneIn(collective_) ? 1 : ends_.size()); ++k)
        e.sent.push_back(lengths_[r][targetOf(k)]);
    if (schedule::hasOut(collective_, root_, r))
      for (std::uint32_t k = 0; k < (schedule::hasOneOut(collective_) ? 1 : ends_.size()); ++k)
        e.received.push_back(lengths_[sourceOf(k)][r]);
    place(random, e.sent, &e.sentAt, &e.in);
    place(random, e.received, &e.receivedAt, &e.out);
    for (std::size_t k = 0; k < e.sent.size(); ++k)
      for (std::size_t i = 0; i < e.sent[k]; ++i)
        e.in[e.sentAt[k] + i] = valueOf(r, targetOf(k), i);
  }

  Exchange callOf(std::uint32_t r) {
    Ends& e = ends_[r];
    return {collective_,
            r,
            static_cast<std::uint32_t>(ends_.size()),
            root_,
            {reinterpret_cast<std::byte*>(e.in.data()), e.sent, e.sentAt},
            {reinterpret_cast<std::byte*>(e.out.data()), e.received, e.receivedAt},
            reduce::DType::I32};
  }

  const Collective collective_;
  const std::uint32_t root_;
  std::vector<Ends> ends_;
  std::vector<std::vector<std::size_t>> lengths_;  // from, to
};

TEST(Exchange, BringsEachBlockToItsPlace) {
  std::mt19937 random(5);
  for (int k = 0; k < 300; ++k)
    for (const Collective c : {Collective::Gather, Collective::Scatter, Collective::AllToAll}) {
      World world(random, c, 1 + static_cast<std::uint32_t>(random() % 9));
      world.exchange();
      world.check();
    }
}

TEST(Exchange, WithoutPlacesBlocksArePacked) {
  int in[6] = {}, out[6] = {};
  const std::size_t sent[] = {1, 2, 3}, received[] = {2, 2, 2};
  const std::vector<PairOp> batch = batchOf({Collective::AllToAll,
                                             1,
                                             3,
                                             0,
                                             {reinterpret_cast<std::byte*>(in), sent, {}},
                                             {reinterpret_cast<std::byte*>(out), received, {}},
                                             reduce::DType::I32});
  ASSERT_EQ(batch.size(), 6u);
  for (const PairOp& op : batch) {
    const std::size_t starts[] = {0, 1, 3};
    EXPECT_EQ(reinterpret_cast<int*>(op.data),
              op.isSend ? in + starts[op.peer] : out + 2 * op.peer);
  }
}

}  // namespace
}  // namespace weft::engine
