// SPDX-License-Identifier: Apache-2.0
#include "launch/hostlist.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::launch {
namespace {

using Names = std::vector<std::string>;

Names expanded(const std::string& list) {
  Names hosts;
  const Status status = expandHostlist(list, &hosts);
  EXPECT_TRUE(status.ok()) << status.text();
  return hosts;
}

TEST(Hostlist, PlainAndRanges) {
  EXPECT_EQ(expanded("a"), Names({"a"}));
  EXPECT_EQ(expanded("a,b.c-d"), Names({"a", "b.c-d"}));
  EXPECT_EQ(expanded("gnode[10,20-22]"), Names({"gnode10", "gnode20", "gnode21", "gnode22"}));
  EXPECT_EQ(expanded("login,n[1-2],x"), Names({"login", "n1", "n2", "x"}));
}

TEST(Hostlist, WidthOfTheFirstNumberIsKept) {
  EXPECT_EQ(expanded("n[008-011]"), Names({"n008", "n009", "n010", "n011"}));
  EXPECT_EQ(expanded("n[9-11]"), Names({"n9", "n10", "n11"}));
}

TEST(Hostlist, BracketsMultiply) {
  EXPECT_EQ(expanded("r[1-2]n[1,3]-ib"), Names({"r1n1-ib", "r1n3-ib", "r2n1-ib", "r2n3-ib"}));
  EXPECT_EQ(expanded("[1-2]"), Names({"1", "2"}));
}

TEST(Hostlist, MalformedIsAnErrorAndGivesNothing) {
  for (const char* list : {"",
                           ",",
                           "a,",
                           ",a",
                           "a,,b",
                           "n[",
                           "n]",
                           "n[]",
                           "n[1",
                           "n[1-]",
                           "n[-1]",
                           "n[2-1]",
                           "n[1,]",
                           "n[1--2]",
                           "n[a]",
                           "n[1-2-3]",
                           "n[[1]]",
                           "a b",
                           "a;rm",
                           "n[0-99999999]",
                           "n[9999999999]",
                           "n[1-300][1-300]",
                           "n[0-65535],m",
                           "n[0-40000,0-40000]"}) {
    Names hosts = {"before"};
    const Status status = expandHostlist(list, &hosts);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << list;
    EXPECT_TRUE(hosts.empty()) << list;
  }
  EXPECT_EQ(expanded("n[0-65535]").size(), kMaxHosts);
}

TEST(Hostlist, NamesAreNoLongerThanHostsHave) {
  Names hosts;
  EXPECT_TRUE(expandHostlist(std::string(kMaxHostBytes, 'a'), &hosts).ok());
  EXPECT_FALSE(expandHostlist("[100,1]" + std::string(kMaxHostBytes - 2, 'a'), &hosts).ok());
  // 65536 names of as many letters as the list would take a gigabyte.
  EXPECT_FALSE(expandHostlist("[0-65535]" + std::string(16384, 'a'), &hosts).ok());
}

TEST(Hostlist, BracketsAreNoMoreThanDimensions) {
  EXPECT_EQ(expanded("n[1][2][3][4][5]"), Names({"n12345"}));
  Names hosts;
  EXPECT_FALSE(expandHostlist("n[1][2][3][4][5][6]", &hosts).ok());
}

TEST(Hostlist, RandomTextIsBounded) {
  std::mt19937 random(4);
  const std::string alphabet = "an[],-0193.";
  int valid = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string list(random() % 14, ' ');
    for (char& c : list) c = alphabet[random() % alphabet.size()];
    Names hosts;
    const bool ok = expandHostlist(list, &hosts).ok();
    EXPECT_EQ(ok, !hosts.empty()) << list;
    EXPECT_LE(hosts.size(), kMaxHosts);
    valid += ok;
  }
  EXPECT_GT(valid, 100);
}

}  // namespace
}  // namespace weft::launch
