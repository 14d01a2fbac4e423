// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/windows.h"

#include <gtest/gtest.h>

#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

WindowLayout layoutOf(std::uint32_t ranks) {
  return {.ranks = ranks, .arrivalSlots = 8 * ranks, .dense = 4, .arenaBytes = 64 * ranks};
}

Token tokenOf(int which) { return {std::byte(which)}; }

TEST(Windows, LieSideBySideInOneMappingOfAProcess) {
  const WindowLayout layout = layoutOf(3);
  Fd memory;
  ASSERT_TRUE(createWindows(layout, &memory).ok());
  std::shared_ptr<Mapping> first, second;
  ASSERT_TRUE(viewWindows(tokenOf(1), memory, layout, &first).ok());
  ASSERT_TRUE(viewWindows(tokenOf(1), memory, layout, &second).ok());
  EXPECT_EQ(first, second);
  const std::byte* const base = first->base();
  for (std::uint32_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(fillWindow(memory, first->base(), layout, r).ok());
    const auto window = windowOf(first, layout, r);
    EXPECT_EQ(window.get(), base + 3 * layout.arrivals() + r * layout.size());
    EXPECT_EQ(reinterpret_cast<std::byte*>(controlOf(*first, layout, r)),
              base + r * layout.arrivals());
    EXPECT_GE(residentBytes(window.get(), layout.size()), layout.denseBytes());
  }
  const auto last = windowOf(first, layout, 2);
  first.reset();
  second.reset();
  EXPECT_EQ(*last, std::byte{});  // mapped as long as anybody has one
}

TEST(Windows, ThoseOfAnotherCommunicatorAreOthers) {
  const WindowLayout layout = layoutOf(2);
  Fd one, other;
  ASSERT_TRUE(createWindows(layout, &one).ok());
  ASSERT_TRUE(createWindows(layout, &other).ok());
  std::shared_ptr<Mapping> first, second;
  ASSERT_TRUE(viewWindows(tokenOf(1), one, layout, &first).ok());
  ASSERT_TRUE(viewWindows(tokenOf(2), other, layout, &second).ok());
  EXPECT_NE(first->base(), second->base());
}

TEST(Windows, MemoryOfAnotherSizeIsRefused) {
  Fd memory;
  ASSERT_TRUE(createWindows(layoutOf(2), &memory).ok());
  std::shared_ptr<Mapping> windows;
  EXPECT_FALSE(viewWindows(tokenOf(3), memory, layoutOf(3), &windows).ok());
}

}  // namespace
}  // namespace weft::shm
