// SPDX-License-Identifier: Apache-2.0
// Buckets are taken in one order on all ranks, whatever order gradients come in.
#include "shard/readiness.h"

#include <gtest/gtest.h>

namespace weft::test {
using namespace shard;
namespace {

class ReadinessOfFour : public testing::Test {
 protected:
  // Buckets hold {3, 2}, then {1, 0}, in reverse order of registration; 4 is frozen.
  void SetUp() override {
    std::vector<ParameterSpec> model = {{.name = "z", .elements = 100},
                                        {.name = "a", .elements = 100},
                                        {.name = "b", .elements = 5000},
                                        {.name = "c", .elements = 100},
                                        {.name = "frozen", .elements = 7, .frozen = true}};
    ASSERT_TRUE(Layout::make(model, 4000, 2, &layout_).ok());
    ASSERT_EQ(layout_.buckets().size(), 2u);
    readiness_.reset();
  }
  std::vector<std::uint32_t> take(bool force) {
    std::vector<std::uint32_t> taken;
    for (std::uint32_t b = 0; readiness_.take(force, &b);) taken.push_back(b);
    return taken;
  }

  Layout layout_;
  Readiness readiness_{layout_};
};

TEST_F(ReadinessOfFour, ABucketWaitsForAllBeforeIt) {
  for (const std::uint32_t p : {0u, 1u, 3u}) EXPECT_EQ(readiness_.mark(p), nullptr);
  EXPECT_TRUE(take(false).empty()) << "bucket 1 is complete, bucket 0 is not";
  EXPECT_EQ(readiness_.missing(), 3u) << "parameter 2, counted from 1";
  EXPECT_EQ(readiness_.mark(2), nullptr);
  EXPECT_EQ(take(false), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(readiness_.missing(), 0u);
}

TEST_F(ReadinessOfFour, AllAreTakenOnceWhereSomeAreMissing) {
  EXPECT_EQ(readiness_.mark(2), nullptr);
  EXPECT_EQ(take(true), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(take(true).empty());
  readiness_.reset();
  EXPECT_EQ(take(true), (std::vector<std::uint32_t>{0, 1}));
}

TEST_F(ReadinessOfFour, WhatCannotBeReadySaysWhy) {
  EXPECT_STREQ(readiness_.mark(4), "is frozen and has no gradient");
  EXPECT_EQ(readiness_.mark(1), nullptr);
  EXPECT_STREQ(readiness_.mark(1), "is ready twice in one micro-step");
}

}  // namespace
}  // namespace weft::test
