// SPDX-License-Identifier: Apache-2.0
#include "engine/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "transports/local/local.h"

namespace weft::engine {
namespace {

constexpr std::size_t kSlotBytes = 16 << 10;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// Two ranks, as threads.
class TwoRanks {
 public:
  struct Rank {
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<watch::Watch> watch;
    std::unique_ptr<Pairs> pairs;

    Status run(std::vector<PairOp> ops, int timeoutMs = 20000) {
      watch->enterPairs(timeoutMs, nullptr);
      const Status status = pairs->run(ops);
      watch->leave();
      return status;
    }
    transport::ArrivalSlot& arrival(std::uint32_t peer, std::uint64_t piece) {
      return transport->own()
          .pairArrivals()[peer * Pairs::kArrivalsPerPeer + piece % Pairs::kPairSlots];
    }
    bool hasLanded() const {
      const std::byte* const from = transport->own().pairArena();
      return std::any_of(from, from + transport->layout().pairBytes,
                         [](std::byte x) { return x != std::byte{0}; });
    }
  };

  // `waiting` is rank 0's.
  explicit TwoRanks(const PairTuning& tuning, const WaitTuning& waiting = {}) {
    onBoth([&](std::uint32_t r) { make(r, tuning, r == 0 ? waiting : WaitTuning()); });
  }
  Rank& operator[](std::size_t r) { return ranks_[r]; }
  // What rank 0 sends reaches rank 1.
  void deliver(std::size_t bytes) {
    std::vector<std::byte> from(bytes, std::byte{7}), to(bytes);
    std::array<Status, 2> done;
    onBoth([&](std::uint32_t r) {
      done[r] =
          ranks_[r].run({{r == 0, 1 - r, (r == 0 ? from : to).data(), bytes, reduce::DType::U8}});
    });
    EXPECT_TRUE(done[0].ok()) << done[0].text();
    EXPECT_TRUE(done[1].ok()) << done[1].text();
    EXPECT_TRUE(from == to);
  }

 private:
  static void onBoth(const std::function<void(std::uint32_t)>& body) {
    std::thread other(body, 1);
    body(0);
    other.join();
  }
  void make(std::uint32_t r, const PairTuning& tuning, const WaitTuning& waiting) {
    transport::TransportSetup setup;
    setup.rank = r;
    setup.ranks = 2;
    setup.layout = {.ranks = 2,
                    .arrivalSlots = 8,
                    .pairArrivalSlots = 2 * Pairs::kArrivalsPerPeer,
                    .arenaBytes = 4096,
                    .pairBytes = 2 * Pairs::kPairSlots * kSlotBytes};
    setup.exchange = [this, r](std::span<const std::byte> mine, auto* all) {
      blobs_[r].assign(mine.begin(), mine.end());
      meet_.arrive_and_wait();
      *all = blobs_;
      meet_.arrive_and_wait();
      return Status();
    };
    Rank& rank = ranks_[r];
    const Status made = local::makeLocal(setup, &rank.transport);
    ASSERT_TRUE(made.ok()) << made.text();
    rank.watch = std::make_unique<watch::Watch>(
        *rank.transport, r, std::vector<PeerName>{{0, "here", 1}, {1, "here", 1}}, "test");
    rank.pairs = std::make_unique<Pairs>(*rank.transport, *rank.watch, r, waiting, tuning);
  }

  std::barrier<> meet_{2};
  std::vector<std::vector<std::byte>> blobs_ = std::vector<std::vector<std::byte>>(2);
  std::array<Rank, 2> ranks_;
};

TEST(Pairs, LongMessagesAreReadWhereTheyLie) {
  TwoRanks ranks({.readMin = 1000, .cmaMin = kNever, .streamMin = kNever});
  ranks.deliver(1000);
  ranks.deliver(5 << 20);
  EXPECT_FALSE(ranks[1].hasLanded());
  ranks.deliver(999);
  EXPECT_TRUE(ranks[1].hasLanded());
}

// The receiver has all, and aborts, before the sender has looked again.
TEST(Pairs, AnAbortAfterTheLastByteFailsNobody) {
  std::atomic<bool> aborted = false;
  WaitTuning waiting;
  waiting.meanwhile = {[](void* context) {
                         static_cast<std::atomic<bool>*>(context)->wait(false);
                         std::this_thread::sleep_for(std::chrono::milliseconds(2));
                       },
                       &aborted};
  TwoRanks ranks({.readMin = 1000, .cmaMin = kNever, .streamMin = kNever}, waiting);
  std::vector<std::byte> from(5000, std::byte{7}), to(5000);
  Status sent;
  std::thread sender([&] {
    sent = ranks[0].run({{true, 1, from.data(), 5000, reduce::DType::U8}});
  });
  const Status received = ranks[1].run({{false, 0, to.data(), 5000, reduce::DType::U8}});
  EXPECT_FALSE(ranks[1].watch->abort().ok());
  aborted = true;
  aborted.notify_all();
  sender.join();
  EXPECT_TRUE(received.ok()) << received.text();
  EXPECT_TRUE(sent.ok()) << sent.text();
  EXPECT_TRUE(from == to);
  EXPECT_FALSE(ranks[0].run({{true, 1, from.data(), 5000, reduce::DType::U8}}).ok());
}

TEST(Pairs, StreamedOnesAreWhole) {
  TwoRanks ranks({.readMin = 1000, .cmaMin = kNever, .streamMin = 4096});
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{(3 << 20) + 5}})
    ranks.deliver(bytes);
}

TEST(Pairs, ShortOnesTravelInTheirArrivalSlot) {
  TwoRanks ranks({.readMin = 0, .cmaMin = 0, .streamMin = kNever});
  for (const std::size_t bytes : {0u, 1u, 48u}) ranks.deliver(bytes);
  EXPECT_FALSE(ranks[1].hasLanded());
}

TEST(Pairs, WhatCannotBeReadGoesThroughTheSlots) {
  TwoRanks ranks({.readMin = kNever, .cmaMin = kNever, .streamMin = kNever});
  ranks.deliver(20 * kSlotBytes + 1);
  EXPECT_TRUE(ranks[1].hasLanded());
}

// A message that waits to be read holds up no other: all of the ring is offered at once.
TEST(Pairs, OffersAreOutTogether) {
  TwoRanks ranks({.readMin = 1000, .cmaMin = kNever, .streamMin = kNever});
  std::vector<std::vector<std::byte>> from(6), to(6, std::vector<std::byte>(2000));
  std::vector<PairOp> sends, receives;
  for (std::size_t k = 0; k < from.size(); ++k) {
    from[k].assign(2000, std::byte(k + 1));
    sends.push_back({true, 1, from[k].data(), 2000, reduce::DType::U8});
    receives.push_back({false, 0, to[k].data(), 2000, reduce::DType::U8});
  }
  Status sent;
  std::thread sender([&] { sent = ranks[0].run(sends); });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  const auto isOut = [&](std::uint64_t piece) {
    return transport::epochOf(ranks[1].arrival(0, piece).flag.load(std::memory_order_acquire)) ==
           piece;
  };
  while (!isOut(Pairs::kPairSlots) && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  for (std::uint64_t piece = 1; piece <= Pairs::kPairSlots; ++piece) EXPECT_TRUE(isOut(piece));
  const Status received = ranks[1].run(receives);
  sender.join();
  EXPECT_TRUE(received.ok()) << received.text();
  EXPECT_TRUE(sent.ok()) << sent.text();
  EXPECT_EQ(from, to);
}

// Whoever has failed counts on nobody touching its buffers.
TEST(Pairs, NothingStartsAfterAFailure) {
  TwoRanks ranks({.readMin = 1000, .cmaMin = kNever, .streamMin = kNever});
  std::vector<std::byte> from(5000, std::byte{7}), to(5000), self(5000);
  const Status late = ranks[0].run({{true, 1, from.data(), 5000, reduce::DType::U8}}, 50);
  EXPECT_EQ(late.code(), Code::Timeout) << late.text();
  const Status after = ranks[1].run({{false, 0, to.data(), 5000, reduce::DType::U8},
                                     {true, 1, from.data(), 5000, reduce::DType::U8},
                                     {false, 1, self.data(), 5000, reduce::DType::U8}});
  EXPECT_EQ(after.text(), late.text());
  EXPECT_EQ(to, std::vector<std::byte>(5000));
  EXPECT_EQ(self, std::vector<std::byte>(5000));
}

TEST(TunePairs, ReadsWhereThatIsCheaper) {
  tune::Machine machine;
  machine.cacheBytes = 1 << 20;
  machine.exchangeNs = 100;
  machine.put = machine.take = tune::flat(10);
  EXPECT_EQ(tunePairs(machine).readMin, 1000u);
  EXPECT_EQ(tunePairs(machine).cmaMin, kNever);  // not permitted
  machine.cmaCallNs = 900;
  machine.cmaTake = tune::flat(10);
  EXPECT_EQ(tunePairs(machine).cmaMin, 10000u);
  machine.cmaTake = tune::flat(4);  // slower than two copies, but for what the cache does not hold
  EXPECT_EQ(tunePairs(machine).cmaMin, 1u << 20);
}

}  // namespace
}  // namespace weft::engine
