// SPDX-License-Identifier: Apache-2.0
#include "tools/test/groups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace weft::test {
using namespace test;
namespace {

std::string complaintOf(const std::string& text, int ranks) {
  try {
    parseGroups(text, ranks);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(Groups, AreReadInAllForms) {
  const Groups expected = {{0, 2}, {3, 1}};
  for (const char* text :
       {"[[0, 2], [3, 1]]", "[[[0, 2], [3, 1]]]", R"({"replica_groups": [[0, 2], [3, 1]]})",
        R"({"replica_groups": [[[0, 2], [3, 1]]]})"}) {
    EXPECT_EQ(parseGroups(text, 4), expected) << text;
  }
  EXPECT_EQ(parseGroups("[[0, 1, 2]]", 3), (Groups{{0, 1, 2}}));
}

TEST(Groups, ComeFromAFile) {
  const std::string path = "/tmp/weft-groups-" + std::to_string(getpid());
  std::ofstream(path) << R"({"replica_groups": [[1, 0]]})";
  EXPECT_EQ(parseGroups(path, 2), (Groups{{1, 0}}));
  unlink(path.c_str());
}

TEST(Groups, ThatMakeNoSenseAreRefusedWithTheReason) {
  EXPECT_NE(complaintOf("[[0, 1], [1, 2]]", 3).find("rank 1 is in two groups"), std::string::npos);
  EXPECT_NE(complaintOf("[[0, 4]]", 4).find("no rank 4 among 4"), std::string::npos);
  EXPECT_NE(complaintOf("[[0, -1]]", 4).find("no rank -1"), std::string::npos);
  EXPECT_NE(complaintOf("[[0, 1], [2]]", 3).find("one size"), std::string::npos);
  EXPECT_NE(complaintOf("[[1, 2]]", 3).find("rank 0"), std::string::npos);
  for (const char* text : {"[]", "[[]]", "[0, 1]", "{", "[[0, \"a\"]]", R"({"groups": [[0]]})"}) {
    EXPECT_NE(complaintOf(text, 3), "") << text;
  }
}

TEST(Groups, PlaceEachRankAndLeaveIdleOnesAlone) {
  const Groups groups = {{0, 2}, {4, 1}};
  EXPECT_EQ(placeOf(0, groups).color, 0);
  EXPECT_EQ(placeOf(2, groups).key, 1);
  EXPECT_EQ(placeOf(1, groups).color, 1);
  EXPECT_EQ(placeOf(1, groups).key, 1);
  EXPECT_NE(placeOf(3, groups).color, placeOf(5, groups).color);
  EXPECT_GT(placeOf(3, groups).color, 1);
}

TEST(Groups, SpreadAreAsFarApartAsCanBe) {
  EXPECT_EQ(spreadGroups(2, 6), (Groups{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_THROW(spreadGroups(4, 6), std::invalid_argument);
}

TEST(Pairs, SendOnceAndReceiveOnce) {
  EXPECT_EQ(parsePairs("[[0, 1], [1, 0], [2, 2]]", 3).size(), 3u);
  for (const char* text :
       {"[[0, 1], [1, 1]]", "[[0, 1], [0, 2]]", "[[0, 1, 2]]", "[[0, 3]]", "[]"}) {
    EXPECT_THROW(parsePairs(text, 3), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace weft::test
