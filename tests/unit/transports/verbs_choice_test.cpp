// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "transports/verbs/gid.h"

namespace weft::verbs {
namespace {

Gid ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}
const Gid kLinkLocal = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
const Gid kGlobal = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

GidRule ruleOf(const std::string& text) {
  GidRule rule;
  const Status status = GidRule::parse(text, &rule);
  EXPECT_TRUE(status.ok()) << status.text();
  return rule;
}

TEST(VerbsGid, KindsAndNames) {
  EXPECT_EQ(kindOf(Gid{}), GidKind::None);
  EXPECT_EQ(kindOf(ipv4(10, 0, 0, 1)), GidKind::Ipv4);
  EXPECT_EQ(kindOf(kLinkLocal), GidKind::LinkLocal);
  EXPECT_EQ(kindOf(kGlobal), GidKind::Ipv6);
  EXPECT_EQ(show(ipv4(10, 0, 0, 1)), "10.0.0.1");
  EXPECT_EQ(show(kLinkLocal), "fe80::1");
}

TEST(VerbsGid, PrefixesOfAnyLength) {
  const Gid a = ipv4(10, 0, 0, 2), b = ipv4(10, 0, 0, 3), c = ipv4(10, 0, 0, 4);
  EXPECT_TRUE(sharePrefix(a, b, 96 + 31));
  EXPECT_FALSE(sharePrefix(b, c, 96 + 31));
  EXPECT_TRUE(sharePrefix(b, c, 96 + 29));
  EXPECT_FALSE(sharePrefix(a, b, 128));
  EXPECT_TRUE(sharePrefix(a, kGlobal, 0));
}

TEST(VerbsGid, Ipv4BeforeIpv6BeforeLinkLocal) {
  const GidRule rule = ruleOf("auto");
  EXPECT_GT(rule.score(ipv4(10, 0, 0, 1)), rule.score(kGlobal));
  EXPECT_GT(rule.score(kGlobal), rule.score(kLinkLocal));
  EXPECT_GT(rule.score(kLinkLocal), 0);
  EXPECT_EQ(rule.score(Gid{}), 0);
}

TEST(VerbsGid, FamiliesAndRanges) {
  EXPECT_EQ(ruleOf("ipv4").score(kLinkLocal), 0);
  EXPECT_GT(ruleOf("ipv6").score(kGlobal), 0);
  EXPECT_EQ(ruleOf("ipv6").score(kLinkLocal), 0);
  EXPECT_GT(ruleOf("link-local").score(kLinkLocal), 0);
  EXPECT_GT(ruleOf("10.1.0.0/16").score(ipv4(10, 1, 200, 3)), 0);
  EXPECT_EQ(ruleOf("10.1.0.0/16").score(ipv4(10, 2, 0, 1)), 0);
  EXPECT_EQ(ruleOf("0.0.0.0/0").score(kGlobal), 0);
  EXPECT_GT(ruleOf("2001:db8::/32").score(kGlobal), 0);
}

TEST(VerbsGid, BadRules) {
  GidRule rule;
  for (const char* bad : {"", "ip", "3", "10.1.0.0", "10.1.0.0/33", "10.1/16", "10.1.0.0/", "x/8",
                          "10.1.0.0/1x", "fe80::/129"}) {
    const Status status = GidRule::parse(bad, &rule);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << bad;
    EXPECT_NE(status.text().find("fix:"), std::string::npos);
  }
}

}  // namespace
}  // namespace weft::verbs
