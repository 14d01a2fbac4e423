// SPDX-License-Identifier: Apache-2.0
#include "tools/train/flat_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::train {
namespace {

TEST(FlatLayout, ReversesAlignsAndCutsIntoBuckets) {
  const std::vector<size_t> sizes{1000, 64, 1, 130};
  const FlatLayout layout(sizes, 200);
  EXPECT_EQ(layout.slot(3).offset, 0u);  // 130, padded to 192
  EXPECT_EQ(layout.slot(2).offset, 192u);
  EXPECT_EQ(layout.slot(1).offset, 256u);
  EXPECT_EQ(layout.slot(0).offset, 320u);
  EXPECT_EQ(layout.size(), 320u + 1024u);
  ASSERT_EQ(layout.buckets().size(), 2u);  // 192 + 64 reach 200
  EXPECT_EQ(layout.buckets()[0].size, 256u);
  EXPECT_EQ(layout.buckets()[0].parameters, 2u);
  EXPECT_EQ(layout.buckets()[1].offset, 256u);
  EXPECT_EQ(layout.buckets()[1].size, 1088u);
}

TEST(FlatLayout, BucketsTileTheBufferAndHoldTheirSlots) {
  std::vector<size_t> sizes;
  for (size_t i = 1; i < 60; ++i) sizes.push_back(i * i * 7 % 5000 + 1);
  for (const size_t bucketSize : {1u, 64u, 1000u, 10000u, 1000000u}) {
    const FlatLayout layout(sizes, bucketSize);
    size_t end = 0, parameters = 0;
    for (const FlatLayout::Bucket& bucket : layout.buckets()) {
      EXPECT_EQ(bucket.offset, end);
      end += bucket.size;
      parameters += bucket.parameters;
    }
    EXPECT_EQ(end, layout.size());
    EXPECT_EQ(parameters, sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const FlatLayout::Slot& slot = layout.slot(i);
      const FlatLayout::Bucket& bucket = layout.buckets()[slot.bucket];
      EXPECT_EQ(slot.size, sizes[i]);
      EXPECT_EQ(slot.offset % FlatLayout::kAlign, 0u);
      EXPECT_GE(slot.offset, bucket.offset);
      EXPECT_LE(slot.offset + slot.size, bucket.offset + bucket.size);
      EXPECT_LE(slot.offset + slot.size, i > 0 ? layout.slot(i - 1).offset : layout.size());
    }
  }
}

}  // namespace
}  // namespace weft::train
