// SPDX-License-Identifier: Apache-2.0
// A root without memory.
#include <gtest/gtest.h>

#include "helpers.h"
#include "tests/ranks/failing_allocator.h"

namespace weft::bootstrap {
namespace {

using namespace weft::test;
using weft::testing::failAllocationOf;
using weft::testing::stopFailing;

// The n-th of its allocations fails, for many n: all ranks have joined, or all know why not.
TEST(RootWithoutMemory, TellsAll) {
  std::vector<Part> parts = healthyParts(2);
  for (Part& part : parts) part.options.root.lingerMs = 300;
  int failed = 0;
  for (const std::int64_t n : {1, 2, 3, 5, 8, 13, 21, 34, 55, 72, 89, 107, 120, 144, 174, 196}) {
    while (rootThreads() != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // of the last round
    UniqueId id;
    const std::string address = "127.0.0.1:" + std::to_string(freePort());
    ASSERT_TRUE(uniqueIdFromAddress(address, "s", Deadline::in(5000), &id).ok());
    failAllocationOf("weft-root", n);
    const std::vector<Joined> results = joinAll(id, parts);
    stopFailing();
    for (const Joined& result : results) {
      EXPECT_EQ(result.status.ok(), results[0].status.ok()) << n << ": " << result.status.text();
      const std::string text = result.status.text();
      const bool said = text.find("out of memory") != std::string::npos ||
                        text.find("died or closed") != std::string::npos;
      EXPECT_TRUE(result.status.ok() || said) << n << ": " << text;
    }
    failed += results[0].status.ok() ? 0 : 1;
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace weft::bootstrap
