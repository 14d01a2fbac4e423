// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/index.h"

#include "folders.h"

namespace weft::test {
using namespace checkpoint;
namespace {

// Before its checksum is known to be wrong.
class HostileIndex : public testing::Test {
 protected:
  Status read(const std::string& more) {
    fillFile(dir_ / "index.json", R"({"format":"weft checkpoint","version":1)" + more + "}");
    CheckpointIndex index;
    return readIndex(dir_ / "index.json", &index);
  }
  TemporaryFolder dir_;
};

TEST_F(HostileIndex, DeepOnesDoNotEndTheStack) {
  constexpr int kDeep = 300'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  EXPECT_EQ(read(",\"x\":" + deep).code(), Code::SystemError);
  EXPECT_EQ(read(",\"sha256\":" + deep).code(), Code::SystemError);
}

TEST_F(HostileIndex, WideOnesDoNotTakeTheSquareOfTheirKeys) {
  std::string keys;
  for (int i = 0; i < 200'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(read(keys).code(), Code::SystemError);
}

}  // namespace
}  // namespace weft::test
