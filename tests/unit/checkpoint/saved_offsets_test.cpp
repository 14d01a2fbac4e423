// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/saved_offsets.h"

#include <gtest/gtest.h>

namespace weft::checkpoint {
namespace {

// As PyTorch's HuggingFaceStorageReader looks for it.
TEST(SavedOffsets, AreWrittenInPyTorchsForm) {
  TensorMetadata metadata;
  ASSERT_TRUE(printOffsets({{"a/weight", 0}, {"b/weight", 12}}, &metadata).ok());
  EXPECT_EQ(metadata["format"], "pt");
  EXPECT_EQ(metadata["DCP_VERSION"], "1.0");
  EXPECT_EQ(metadata["DCP_SHARDING_INFO"],
            R"({"a/weight":{"saved_offsets":[0]},"b/weight":{"saved_offsets":[12]}})");
}

TEST(SavedOffsets, AreReadAsTheyWereWritten) {
  for (const SavedOffsets& offsets :
       {SavedOffsets{}, SavedOffsets{{"\"/@", 7}, {"x", ~std::uint64_t{0}}}}) {
    TensorMetadata metadata;
    ASSERT_TRUE(printOffsets(offsets, &metadata).ok());
    EXPECT_EQ(parseOffsets(metadata), offsets);
  }
}

TEST(SavedOffsets, ANameThatIsNotUtf8SaysSo) {
  TensorMetadata metadata;
  const Status status = printOffsets({{"\xff", 1}}, &metadata);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_NE(status.text().find("is not UTF-8"), std::string::npos) << status.text();
}

TEST(SavedOffsets, OfAnotherFormAreNone) {
  EXPECT_FALSE(parseOffsets({{"format", "pt"}}));
  for (const char* const text :
       {"", "[]", "{", R"({"a":3})", R"({"a":{}})", R"({"a":{"saved_offsets":3}})",
        R"({"a":{"saved_offsets":[]}})", R"({"a":{"saved_offsets":[-1]}})",
        R"({"a":{"saved_offsets":[1.5]}})", R"({"a":{"saved_offsets":[1,2]}})",
        R"({"a":{"saved_offsets":[1]},"a":{"saved_offsets":[2]}})"})
    EXPECT_FALSE(parseOffsets({{"DCP_SHARDING_INFO", text}})) << text;
}

}  // namespace
}  // namespace weft::checkpoint
