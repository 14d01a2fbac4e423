// SPDX-License-Identifier: Apache-2.0
// A network that is cut without a word. Hosts are network namespaces on a bridge; needs root.
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "control/link_socket.h"
#include "remote_world.h"

namespace weft::control {
namespace {

using namespace weft::test;

bool shell(const std::string& command) { return std::system((command + " 2>&1").c_str()) == 0; }

constexpr std::uint32_t kUnplugged = 10;  // a stage

// What a rank does before it opens its link: its own network, with an address that the parent plugs
// into the bridge.
void liveInNamespace(Common& common, std::uint32_t rank) {
  if (::unshare(CLONE_NEWNET) != 0) ::_exit(4);
  common.stage[rank].store(kUnplugged);
  if (!eventually(20000, [] { return ::if_nametoindex("eth0") != 0; })) ::_exit(5);
  if (!shell("ip link set lo up && ip link set eth0 up && ip addr add dev eth0 10.77.0." +
             std::to_string(rank + 1) + "/24"))
    ::_exit(6);
  common.stage[rank].store(0);
}

// Each rank is a host, 0 the server's.
class Hosts {
 public:
  explicit Hosts(std::uint32_t hosts, const Body& body) : ranks(hosts, body, 1, liveInNamespace) {
    for (std::uint32_t r = 0; r < hosts; ++r) {
      EXPECT_TRUE(eventually(20000, [&] { return ranks.common->stage[r] == kUnplugged; }));
      EXPECT_TRUE(shell(text("ip link add v", r, " type veth peer name eth0 netns ", ranks.pids[r],
                             " && ip link set v", r, " master br0 up")));
    }
    for (std::uint32_t r = 0; r < hosts; ++r)
      EXPECT_TRUE(eventually(20000, [&] { return ranks.common->stage[r] != kUnplugged; }));
  }
  // Frames are no longer passed on; nobody is told.
  void cut(std::uint32_t host) { EXPECT_TRUE(shell(text("ip link set v", host, " nomaster"))); }

  Processes ranks;
};

class NetworkCut : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    home_ = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no network namespaces here";
    if (!shell("ip link add br0 type bridge && ip link set br0 up"))
      GTEST_SKIP() << "no bridge here (ip link add type bridge)";
  }
  void TearDown() override {
    if (home_ < 0) return;
    EXPECT_EQ(::setns(home_, CLONE_NEWNET), 0);
    ::close(home_);
  }

 private:
  int home_ = -1;
};

void stuck(Member& m) {
  m.call(planOf(10));
  m.reached(1);
  (void)m.stuckIn(planOf(20), 20000, (m.rank + 1) % 3);
  m.reached(2);
}

TEST_F(NetworkCut, AHostThatIsCutOffIsNamedOnBothSides) {
  Hosts hosts(3, stuck);
  const Processes& p = hosts.ranks;
  ASSERT_TRUE(p.allReached(1));
  const double start = nowMs();
  hosts.cut(2);
  ASSERT_TRUE(p.allReached(2));
  expectHas(p.said(0), "host h2 (rank 2) unreachable for ");
  expectHas(p.said(0), "host or its uplink is down");
  EXPECT_EQ(p.said(0), p.said(1));
  expectHas(p.said(2), "host h0 of rank 0 unreachable from host h2 for ");
  expectHas(p.said(2), "its uplink or that of host h2 is down");
  for (std::uint32_t r = 0; r < 3; ++r) {
    EXPECT_LT(p.common->at[r] - start, kPromptMs) << "rank " << r;
    RecordProperty("latency_ms_" + std::to_string(r), static_cast<int>(p.common->at[r] - start));
  }
}

TEST_F(NetworkCut, TheServersHostKnowsThatItIsTheCulprit) {
  Hosts hosts(3, stuck);
  const Processes& p = hosts.ranks;
  ASSERT_TRUE(p.allReached(1));
  const double start = nowMs();
  hosts.cut(0);
  ASSERT_TRUE(p.allReached(2));
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_LT(p.common->at[r] - start, kPromptMs);
  for (std::uint32_t r : {1u, 2u})
    expectHas(p.said(r), text("host h0 of rank 0 unreachable from host h", r, " for "));
  expectHas(p.said(0), "unreachable");
  expectHas(p.said(0), "host h0");
}

// The kernel gives up the last connection when the first's end would have been told long since.
TEST_F(NetworkCut, TheServersHostKnowsItEvenIfOthersFallSilentLater) {
  Hosts hosts(3, stuck);
  const Processes& p = hosts.ranks;
  ASSERT_TRUE(p.allReached(1));
  hosts.cut(1);
  std::this_thread::sleep_for(milliseconds(600));
  hosts.cut(2);
  ASSERT_TRUE(p.allReached(2));
  expectHas(p.said(0), "the uplink of host h0 is down");
}

// Until `go`, or what it is told before.
void patient(Member& m) {
  m.call(planOf(10));
  m.reached(1);
  m.watch->enter(planOf(20), 20000, nullptr);
  Status status;
  while (m.common->go.load() == 0 && status.ok()) {
    status = m.watch->trouble(1);
    std::this_thread::sleep_for(milliseconds(1));
  }
  m.note(status);
  m.watch->leave();
  m.reached(2);
}

// Shorter than the kernel's patience: nobody notices.
TEST_F(NetworkCut, AFlapIsForgiven) {
  Hosts hosts(3, patient);
  const Processes& p = hosts.ranks;
  ASSERT_TRUE(p.allReached(1));
  const double start = nowMs();
  hosts.cut(2);
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_TRUE(shell("ip link set v2 master br0"));
  const double cutMs = nowMs() - start;
  std::this_thread::sleep_for(milliseconds(4000));
  p.common->go.store(1);
  ASSERT_TRUE(p.allReached(2));
  if (cutMs > 1000) GTEST_SKIP() << "a machine so busy that it flapped for " << cutMs << " ms";
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_EQ(p.said(r), "");
}

// Nobody is asked within a host for a sign of life: a rank there that has nothing to say would else put off
// the news of every host that is cut off.
TEST_F(NetworkCut, NobodyIsSilentWithinAHost) {
  ASSERT_TRUE(shell("ip link set lo up"));
  net::Socket listener, near;
  net::Address address{.ip = {127, 0, 0, 1}};
  int error = 0;
  ASSERT_TRUE(net::listenAt(address, &listener, &address, &error).ok());
  ASSERT_TRUE(net::connectTo(address, Deadline::in(20000), &near, &error).ok());
  watchClosely(near);
  std::this_thread::sleep_for(milliseconds(1500));
  EXPECT_FALSE(isSilent(near));
}

// What is sent within a host does not arrive for longer than that: its kernel is busy, nobody is away.
// (By their names these ranks are of three hosts, and told of cuts in their calls.)
TEST_F(NetworkCut, WithinAHostSilenceIsForgiven) {
  ASSERT_TRUE(shell("ip link set lo up"));
  const Processes p(3, patient);
  ASSERT_TRUE(p.allReached(1));
  EXPECT_TRUE(shell("ip link set lo down"));
  std::this_thread::sleep_for(milliseconds(7000));
  EXPECT_TRUE(shell("ip link set lo up"));
  p.common->go.store(1);
  ASSERT_TRUE(p.allReached(2));
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_EQ(p.said(r), "");
}

}  // namespace
}  // namespace weft::control
