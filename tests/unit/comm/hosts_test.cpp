// SPDX-License-Identifier: Apache-2.0
// Ranks of several hosts, which are threads here that say so.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/threads.h"
#include "comm/create.h"
#include "comm/thread_exchange.h"

namespace weft::comm {
namespace {

TEST(Hosts, EachRankKnowsItsPlaceAmongThoseOfItsHost) {
  const std::vector<std::string> hosts{"a", "b", "a", "b", "b"};
  const auto ranks = static_cast<std::uint32_t>(hosts.size());
  std::vector<PeerName> names;
  for (std::uint32_t r = 0; r < ranks; ++r)
    names.push_back({static_cast<int>(r), hosts[r], ::getpid(), hosts[r]});
  const Deadline deadline = Deadline::in(60000);
  ThreadExchange threads(ranks, deadline);
  std::vector<std::vector<std::uint32_t>> places(ranks);
  const Status status = onThreads(ranks, [&](std::size_t r) -> Status {
    const auto rank = static_cast<std::uint32_t>(r);
    CommConfig config;
    config.transport = "ofi";
    std::shared_ptr<Communicator> made;
    const transport::Exchange exchange = [&](std::span<const std::byte> mine, auto* all) {
      return threads.gather(r, mine, all);
    };
    WEFT_TRY(buildCommunicator(rank, names, exchange, config, deadline, &made));
    places[r] = {made->localRank(), made->localRanks()};
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(places,
            (std::vector<std::vector<std::uint32_t>>{{0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
}

TEST(Threads, ThatDoNotComeAreNamedAtTheDeadline) {
  ThreadExchange threads(4, Deadline::in(20));
  std::vector<std::vector<std::byte>> all;
  const Status late = threads.gather(1, {}, &all);
  EXPECT_EQ(late.code(), Code::Timeout);
  EXPECT_EQ(late.data().missing, (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_NE(late.text().find("rank 1 waits for other threads' ranks; 1 of 4 came"),
            std::string::npos)
      << late.text();
}

}  // namespace
}  // namespace weft::comm
