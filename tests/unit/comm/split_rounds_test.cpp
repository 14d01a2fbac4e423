// SPDX-License-Identifier: Apache-2.0
// What a split takes of its parent: so many collectives, on all ranks alike, whatever colors do.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/threads.h"
#include "comm/create.h"
#include "tests/has_libfabric.h"

namespace weft::comm {
namespace {

constexpr std::uint32_t kFour = 4;

using Colors = std::vector<int>;
using Family = std::vector<std::shared_ptr<Communicator>>;

// Calls of the parent in a split by these colors; those of a color then make one.
std::uint64_t callsOfSplit(const Family& parent, const Colors& colors, const CommConfig& config,
                           Family* made) {
  made->assign(kFour, nullptr);
  std::vector<std::uint64_t> calls(kFour);
  const Status all = onThreads(kFour, [&](std::size_t r) -> Status {
    const std::uint64_t before = parent[r]->core()->watch.calls();
    WEFT_TRY(splitCommunicator(*parent[r], colors[r], 0, config, &(*made)[r]));
    calls[r] = parent[r]->core()->watch.calls() - before;
    if (!(*made)[r]) return {};
    const auto mine = static_cast<std::uint32_t>(r);
    std::vector<std::uint32_t> others((*made)[r]->ranks());
    return (*made)[r]->allGather(&mine, others.data(), 1, reduce::DType::U32, 30000, nullptr);
  });
  EXPECT_TRUE(all.ok()) << all.text();
  for (std::uint32_t r = 1; r < kFour; ++r) EXPECT_EQ(calls[r], calls[0]) << "rank " << r;
  return calls[0];
}

TEST(SplitRounds, AreThreeWhereNothingIsToBeOpened) {
  for (const char* transport : {"shm", "ofi"}) {
    if (transport == std::string_view("ofi") && !test::hasLibfabric()) continue;
    SCOPED_TRACE(transport);
    const bool wire = transport == std::string_view("ofi");
    CommConfig config;
    config.transport = transport;
    Family parent, halves, again, nested, some;
    ASSERT_TRUE(createAll(kFour, config, &parent).ok());
    const auto calls = [&](const Colors& colors, Family* made) {
      return callsOfSplit(parent, colors, config, made);
    };
    EXPECT_EQ(calls({0, 0, 0, 0}, &nested), 3u);
    // The second half has a control link of its own over a wire, which is opened once.
    EXPECT_EQ(calls({0, 0, 1, 1}, &halves), wire ? 6u : 3u);
    EXPECT_EQ(calls({0, 0, 1, 1}, &again), 3u);
    EXPECT_EQ(calls({-1, -1, 7, 7}, &some), 3u);
    EXPECT_EQ(calls({-1, -1, -1, -1}, &some), 2u);
    EXPECT_EQ(callsOfSplit(nested, {3, 3, 2, 2}, config, &some), 3u);
    // One color wants what its parent has not, and meets by an id.
    CommConfig other = config;
    other.transport = "faulty:3";
    Family byId;
    EXPECT_EQ(callsOfSplit(parent, {0, 0, 0, -1}, other, &byId), 4u);
    EXPECT_TRUE(byId[0] && byId[2] && !byId[3]);
  }
}

}  // namespace
}  // namespace weft::comm
