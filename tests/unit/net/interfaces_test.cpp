// SPDX-License-Identifier: Apache-2.0
#include "net/interfaces.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/bootstrap/helpers.h"

namespace weft::net {
namespace {

Address v4(std::uint8_t a, std::uint8_t d) {
  Address address;
  address.ip = {a, 0, 0, d};
  return address;
}
Address v6(std::uint8_t last) {
  Address address;
  address.v6 = true;
  address.ip[0] = 0xfd;
  address.ip[15] = last;
  return address;
}

const std::vector<Interface> kHost = {
    {"lo", {v4(127, 1)}}, {"eth0", {v4(10, 9), v4(10, 10), v6(1)}}, {"ib0", {v4(11, 9)}}};

using Addresses = std::vector<Address>;

Addresses chosen(const std::vector<Interface>& host, const std::string& wanted,
                 const std::string& route) {
  Addresses addresses;
  const Status status = chooseAddresses(host, wanted, route, &addresses);
  EXPECT_TRUE(status.ok()) << status.text();
  return addresses;
}

TEST(Interfaces, TheOneWithTheDefaultRouteOneAddressOfEachFamily) {
  EXPECT_EQ(chosen(kHost, "", "eth0"), Addresses({v4(10, 9), v6(1)}));
  EXPECT_EQ(chosen(kHost, "", "ib0"), Addresses({v4(11, 9)}));
}

TEST(Interfaces, WithoutARouteTheFirstThatIsNotLoopback) {
  EXPECT_EQ(chosen(kHost, "", ""), Addresses({v4(10, 9), v6(1)}));
  EXPECT_EQ(chosen({kHost[0]}, "", ""), Addresses({v4(127, 1)}));
}

TEST(Interfaces, TheFirstWantedOneThatIsThere) {
  EXPECT_EQ(chosen(kHost, "ib0", "eth0"), Addresses({v4(11, 9)}));
  EXPECT_EQ(chosen(kHost, "ib7,lo", "eth0"), Addresses({v4(127, 1)}));
}

TEST(Interfaces, AnUnknownOneIsAnErrorThatListsTheOthers) {
  Addresses addresses;
  const Status status = chooseAddresses(kHost, "eth", "eth0", &addresses);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  test::expectHas(status.text(), "WEFT_SOCKET_IFNAME=eth names no interface");
  test::expectHas(status.text(), "lo, eth0, ib0");
  EXPECT_EQ(status.data().variable, "WEFT_SOCKET_IFNAME");
  const Status none = chooseAddresses({}, "", "", &addresses);
  EXPECT_EQ(none.data().variable, "") << "nobody has named one";
  EXPECT_EQ(none.text(),
            "no network interface is up, not even loopback. fix: ip link set lo "
            "up, or start all "
            "ranks where a network is");
}

TEST(Interfaces, DefaultRouteV4IsTheOneOfLowestMetric) {
  std::istringstream routes(
      "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
      "ib0\t0000000B\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
      "wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth9\t00000000\t010200C0\t0002\t0\t0\t1\t00000000\t0\t0\t0\n");
  EXPECT_EQ(defaultRouteV4(routes), "eth0");
  std::istringstream garbage("x\n\n\tq 00000000\n");
  EXPECT_EQ(defaultRouteV4(garbage), "");
}

TEST(Interfaces, DefaultRouteV6) {
  const std::string zeros(32, '0');
  std::istringstream routes("fd" + std::string(30, '0') + " 40 " + zeros + " 00 " + zeros +
                            " 00000100 1 0 1 ib0\n" + zeros + " 00 " + zeros + " 00 " + zeros +
                            " ffffffff 1 0 200200 lo\n" + zeros + " 00 " + zeros + " 00 " + zeros +
                            " 00000400 1 0 3 eth0\n");
  EXPECT_EQ(defaultRouteV6(routes), "eth0");
}

TEST(Interfaces, ThisHostHasAtLeastLoopback) {
  std::vector<Interface> interfaces;
  ASSERT_TRUE(listInterfaces(&interfaces).ok());
  EXPECT_TRUE(std::any_of(interfaces.begin(), interfaces.end(),
                          [](const Interface& i) { return i.addresses.front().loopback(); }));
}

TEST(Addresses, TextAndBack) {
  HostPort target;
  ASSERT_TRUE(parseHostPort("T", "[fd00::1]:80", &target).ok());
  EXPECT_EQ(target.host, "fd00::1");
  EXPECT_EQ(target.port, 80);
  Addresses addresses;
  ASSERT_TRUE(resolve(target, Deadline::in(1000), &addresses).ok());
  EXPECT_EQ(addresses.at(0).text(), "[fd00::1]:80");
  sockaddr_storage storage;
  addresses[0].toSockaddr(&storage);
  EXPECT_EQ(Address::from(reinterpret_cast<sockaddr*>(&storage)), addresses[0]);
}

TEST(Addresses, MalformedHostPorts) {
  HostPort target;
  for (const char* written : {"", ":", "host", "host:", ":80", "host:0", "host:65536", "host:8x",
                              "host: 80", "fd00::1:80", "[]:80", "host:-1"}) {
    const Status status = parseHostPort("WEFT_ROOT", written, &target);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << written;
    test::expectHas(status.text(), std::string("WEFT_ROOT=") + written);
    test::expectHas(status.text(), "; fix: write it as node1:29500");
  }
}

TEST(Addresses, UnknownNamesAreAnErrorAtTheDeadline) {
  Addresses addresses;
  const Status status = resolve({"no-such-host.invalid", 80}, Deadline::in(50), &addresses);
  EXPECT_FALSE(status.ok());
  test::expectHas(status.text(), "no-such-host.invalid");
}

}  // namespace
}  // namespace weft::net
