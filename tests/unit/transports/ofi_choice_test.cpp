// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/choice.h"

#include <gtest/gtest.h>

namespace weft::ofi {
namespace {

Candidate interface(const std::string& device, const std::string& subnet,
                    const std::string& address) {
  Candidate made;
  made.info = std::make_shared<fi_info>();
  made.device = device;
  made.subnet = subnet;
  made.address = address;
  made.ip = true;
  made.loopback = device == "lo";
  return made;
}
Candidate nic(const std::string& device, int distance = 0) {
  Candidate made = interface(device, "efa", "");
  made.ip = false;
  made.distance = distance;
  return made;
}

// The ranks of a job: what each has, and its host.
struct Job {
  std::vector<std::vector<Candidate>> own;
  std::vector<Offering> offerings;

  void add(std::uint64_t host, std::vector<Candidate> candidates, bool named = false) {
    Offering offering;
    offering.host = host;
    offering.takesPart = 1;
    offering.named = named;
    addWays(candidates, &offering);
    offerings.push_back(offering);
    own.push_back(std::move(candidates));
  }
  std::string ip(std::uint32_t rank) const {
    std::string why;
    return join(chooseIp(own[rank], offerings, &why));
  }
  std::string nics(std::uint32_t rank) const {
    return join(chooseNics(own[rank], rank, offerings));
  }

  static std::string join(const std::vector<Candidate>& chosen) {
    std::string names;
    for (const Candidate& candidate : chosen) names += candidate.device + " ";
    return names;
  }
};

const Candidate kLo = interface("lo", "127.0.0.1/32", "127.0.0.1:0");

TEST(OfiChoice, OneHostUsesLoopback) {
  Job job;
  for (int i = 0; i < 2; ++i) job.add(7, {interface("eth0", "10.0.0.0/24", "10.0.0.1:0"), kLo});
  EXPECT_EQ(job.ip(0), "lo ");
  EXPECT_EQ(job.ip(1), "lo ");
}

// Whatever the order in which a host lists its interfaces, and whatever their names.
TEST(OfiChoice, SeveralHostsUseTheSubnetOfAll) {
  Job job;
  job.add(1, {kLo, interface("priv", "172.16.0.0/16", "172.16.0.1:0"),
              interface("eth0", "10.0.0.0/24", "10.0.0.1:0")});
  job.add(2, {kLo, interface("ens5", "10.0.0.0/24", "10.0.0.2:0"),
              interface("other", "192.168.0.0/24", "192.168.0.1:0")});
  EXPECT_EQ(job.ip(0), "eth0 ");
  EXPECT_EQ(job.ip(1), "ens5 ");
}

TEST(OfiChoice, ABridgeOfEachHostIsNoWayBetweenThem) {
  Job job;
  for (int host = 1; host <= 2; ++host)
    job.add(static_cast<std::uint64_t>(host),
            {interface("docker0", "172.17.0.0/16", "172.17.0.1:0"),
             interface("eth0", "10.0.0.0/24", "10.0.0." + std::to_string(host) + ":0")});
  EXPECT_EQ(job.ip(0), "eth0 ");
  EXPECT_EQ(job.ip(1), "eth0 ");
}

TEST(OfiChoice, WithoutACommonSubnetRoutersDoTheRest) {
  Job job;
  job.add(1, {kLo, interface("eth0", "10.0.1.0/24", "10.0.1.1:0")});
  job.add(2, {kLo, interface("eth0", "10.0.2.0/24", "10.0.2.1:0")});
  EXPECT_EQ(job.ip(0), "eth0 ");
  EXPECT_EQ(job.ip(1), "eth0 ");
}

TEST(OfiChoice, NamedInterfacesAreRailsInTheOrderOfTheFirstRank) {
  Job job;
  for (int host = 1; host <= 2; ++host) {
    const std::string at = std::to_string(host) + ":0";
    std::vector<Candidate> own = {interface("a", "10.1.0.0/24", "10.1.0." + at),
                                  interface("a", "fd01::/64", "[fd01::" + at),
                                  interface("b", "10.2.0.0/24", "10.2.0." + at)};
    if (host == 2) std::swap(own.front(), own.back());
    job.add(static_cast<std::uint64_t>(host), own, true);
  }
  EXPECT_EQ(job.ip(0), "a b ");
  EXPECT_EQ(job.ip(1), "a b ");
}

TEST(OfiChoice, RanksThatTakeNoPartDoNotCount) {
  Job job;
  job.add(1, {interface("eth0", "10.0.0.0/24", "10.0.0.1:0")});
  job.add(2, {});
  job.offerings.back().takesPart = 0;
  job.add(3, {interface("eth0", "10.0.0.0/24", "10.0.0.3:0")});
  EXPECT_EQ(job.ip(0), "eth0 ");
  EXPECT_EQ(job.ip(2), "eth0 ");
}

TEST(OfiChoice, RanksOfAHostShareItsNics) {
  Job job;
  for (int i = 0; i < 2; ++i) job.add(1, {nic("a"), nic("b"), nic("c"), nic("d")});
  EXPECT_EQ(job.nics(0), "a b ");
  EXPECT_EQ(job.nics(1), "b c ");
}

TEST(OfiChoice, NearNicsFirstAndAtMostFour) {
  Job job;
  job.add(1, {nic("a"), nic("b"), nic("far0", 1), nic("far1", 1), nic("far2", 1)});
  EXPECT_EQ(job.nics(0), "a b far0 far1 ");
}

}  // namespace
}  // namespace weft::ofi
