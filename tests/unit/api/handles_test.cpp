// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weft::api {

std::atomic<std::uint32_t> forks{0};

namespace {

using Table = Handles<int, 7>;
constexpr std::size_t kCapacity = Table::kCapacity;

void* pointer(std::uintptr_t handle) { return reinterpret_cast<void*>(handle); }

class HandlesTest : public ::testing::Test {
 protected:
  std::uintptr_t add(int value) { return table_->add(std::make_shared<int>(value)); }
  void fill(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) ASSERT_NE(add(static_cast<int>(i)), 0u);
  }

  std::unique_ptr<Table> table_ = std::make_unique<Table>();
};

TEST_F(HandlesTest, FindTheirObjectUntilItIsRemoved) {
  const std::uintptr_t one = add(1), two = add(2);
  EXPECT_EQ(*table_->find(pointer(one)), 1);
  EXPECT_EQ(*table_->find(pointer(two)).shared(), 2);
  EXPECT_TRUE(table_->remove(pointer(one)));
  EXPECT_FALSE(table_->find(pointer(one)));
  EXPECT_FALSE(table_->remove(pointer(one)));
  const std::uintptr_t three = add(3);  // at the same place
  EXPECT_NE(three, one);
  EXPECT_FALSE(table_->find(pointer(one)));
  EXPECT_EQ(*table_->find(pointer(three)), 3);
}

TEST_F(HandlesTest, MadeUpOnesFindNothing) {
  const std::uintptr_t handle = add(1);
  for (const std::uintptr_t wrong :
       {std::uintptr_t{0}, handle + 16, handle ^ 2, ~std::uintptr_t{0}})
    EXPECT_FALSE(table_->find(pointer(wrong))) << wrong;
}

TEST_F(HandlesTest, AFullTableTakesNoMoreUntilOneIsRemoved) {
  fill(kCapacity - 1);
  const std::uintptr_t last = add(1);
  EXPECT_NE(last, 0u);
  EXPECT_EQ(add(2), 0u);
  EXPECT_TRUE(table_->remove(pointer(last)));
  EXPECT_NE(add(3), 0u);
  EXPECT_EQ(add(4), 0u);
}

// As when weftCommInitAll finds the table nearly full: no communicator stays behind.
TEST_F(HandlesTest, SeveralAreTakenTogetherOrNotAtAll) {
  fill(kCapacity - 3);
  std::vector<std::shared_ptr<int>> four(4, std::make_shared<int>(5));
  const std::weak_ptr<int> watch = four[0];
  std::vector<std::uintptr_t> handles(4, 0);
  EXPECT_FALSE(table_->addAll(four, handles.data()));
  EXPECT_EQ(handles, std::vector<std::uintptr_t>(4, 0));
  four.clear();
  EXPECT_TRUE(watch.expired());

  std::vector<std::shared_ptr<int>> three(3, std::make_shared<int>(6));
  EXPECT_TRUE(table_->addAll(three, handles.data()));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(*table_->find(pointer(handles[i])), 6);
  EXPECT_EQ(add(7), 0u);
}

TEST_F(HandlesTest, OfTheParentAreNotTheChilds) {
  const std::uintptr_t handle = add(1);
  EXPECT_FALSE(table_->isParents(pointer(handle)));
  ++forks;
  EXPECT_TRUE(table_->isParents(pointer(handle)));
  EXPECT_FALSE(table_->find(pointer(handle)));
  EXPECT_FALSE(table_->remove(pointer(handle)));
  --forks;
}

TEST_F(HandlesTest, WhatIsPinnedOutlivesItsHandle) {
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = object;
  const std::uintptr_t handle = table_->add(std::move(object));
  Table::Pin first = table_->find(pointer(handle));
  {
    const Table::Pin second = table_->find(pointer(handle));
    EXPECT_TRUE(table_->remove(pointer(handle)));
    EXPECT_FALSE(table_->find(pointer(handle)));
    EXPECT_EQ(*second, 1);
  }
  EXPECT_EQ(*first, 1);
  first = {};
  EXPECT_TRUE(alive.expired());
}

// Of all others, and of what is no handle (any more), it finds nothing.
TEST_F(HandlesTest, APlaceBelongsToTheFirstThreadThatAsks) {
  const std::uintptr_t handle = add(1);
  const bool fences = hasHeavyFences();
  EXPECT_EQ(static_cast<bool>(table_->findOwn(pointer(handle))), fences);
  EXPECT_EQ(static_cast<bool>(table_->findOwn(pointer(handle))), fences);
  std::thread([&] { EXPECT_FALSE(table_->findOwn(pointer(handle))); }).join();
  EXPECT_FALSE(table_->findOwn(nullptr));
  EXPECT_FALSE(table_->findOwn(pointer(handle + (std::uintptr_t{1} << 16))));
  ++forks;
  EXPECT_FALSE(table_->findOwn(pointer(handle)));
  --forks;
  EXPECT_TRUE(table_->remove(pointer(handle)));
  EXPECT_FALSE(table_->findOwn(pointer(handle)));
}

TEST_F(HandlesTest, WhatItsOwnThreadPinsOutlivesItsHandle) {
  if (!hasHeavyFences()) GTEST_SKIP() << "no membarrier here";
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = object;
  const std::uintptr_t handle = table_->add(std::move(object));
  {
    const Table::OwnPin outer = table_->findOwn(pointer(handle));
    ASSERT_TRUE(outer);
    {
      const Table::OwnPin inner = table_->findOwn(pointer(handle));
      std::thread([&] { EXPECT_TRUE(table_->remove(pointer(handle))); }).join();
    }
    EXPECT_FALSE(alive.expired());
    EXPECT_EQ(*outer, 1);
  }
  EXPECT_TRUE(alive.expired());
}

// One thread looks up its own that another one destroys and makes anew.
TEST_F(HandlesTest, OwnLookUpsRaceWithDestruction) {
  std::atomic<std::uintptr_t> current{add(7)};
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread owner([&] {
    while (!over) {
      const Table::OwnPin pin = table_->findOwn(pointer(current));
      if (pin && *pin != 7) ++wrong;
    }
  });
  for (int i = 0; i < 5000; ++i) {
    EXPECT_TRUE(table_->remove(pointer(current)));
    current = add(7);
    ASSERT_NE(current, 0u);
  }
  over = true;
  owner.join();
  EXPECT_EQ(wrong, 0);
}

// Three threads look one up that a fourth destroys and makes anew.
TEST_F(HandlesTest, LookUpsRaceWithDestruction) {
  std::atomic<std::uintptr_t> current{add(7)};
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const Table::Pin pin = table_->find(pointer(current));
        if (pin && *pin != 7) ++wrong;
        (void)table_->isParents(pointer(current));
      }
    });
  }
  for (int i = 0; i < 20000; ++i) {
    EXPECT_TRUE(table_->remove(pointer(current)));
    current = add(7);
    ASSERT_NE(current, 0u);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace weft::api
