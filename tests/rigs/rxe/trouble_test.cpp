// SPDX-License-Identifier: Apache-2.0
// Verbs in the rig's mesh of four cards: wirings that are wrong, cables that are pulled. Runs as
// the machine's root.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/deadline.h"
#include "courier.h"
#include "world.h"

namespace weft::verbs {
namespace {

constexpr std::uint32_t kCards = 4;
constexpr int kPatienceMs = 120000;  // an emulated machine on a busy one takes 12 s for a call

void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

// What all ranks say of their set-up; a difference is a failure.
std::string setUpSays(std::uint32_t ranks, const std::function<void(transport::Rank&)>& before) {
  std::array<char, 4096> said{};
  int pipes[2];
  EXPECT_EQ(::pipe(pipes), 0);
  transport::runAllWell(transport::verbsFabric(), ranks, [&](transport::Rank& rank) {
    before(rank);
    std::unique_ptr<transport::Transport> transport;
    transport::TransportSetup setup = rank.setup(transport::smallLayout(rank.ranks));
    setup.timeoutMs = 6000;
    const Status status = rank.tryMake(setup, &transport);
    std::array<char, 2000> words{};
    const std::string text = status.ok() ? transport->describe(rank.rank == 0) : status.text();
    std::copy_n(text.begin(), std::min(text.size(), words.size() - 1), words.begin());
    const auto all = rank.share(words);
    for (const auto& theirs : all)
      REQUIRE(status.ok() || std::string(theirs.data()) == text, theirs.data(), " versus ", text);
    if (rank.rank == 0) REQUIRE(::write(pipes[1], words.data(), text.size()) >= 0);
  });
  ::close(pipes[1]);
  const ssize_t got = ::read(pipes[0], said.data(), said.size() - 1);
  ::close(pipes[0]);
  return std::string(said.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
}

std::string setUpWith(std::uint32_t ranks, const char* knob, const std::string& value) {
  return setUpSays(ranks, [&](transport::Rank&) { ::setenv(knob, value.c_str(), 1); });
}

#define EXPECT_HAS(words, part) \
  EXPECT_TRUE((words).find(part) != std::string::npos) << "'" << part << "' is not in: " << (words)

std::string fileOf(const std::string& lines) {
  const std::string name = "/tmp/mesh.txt";
  std::ofstream(name) << lines;
  return name;
}

// ---- wiring -------------------------------------------------------------------------------------

TEST(Wiring, Subnets) {
  const std::string route = setUpWith(kCards, "WEFT_ROCE_GID", "auto");
  EXPECT_HAS(route, "rc0p1:1 -> rc1p0:1, 10.0.0.0 -> 10.0.0.1");
}

TEST(Wiring, HelloBetweenLinkLocals) {
  const std::string route = setUpWith(kCards, "WEFT_ROCE_GID", "link-local");
  EXPECT_HAS(route, "rc0p1:1 -> rc1p0:1, fe80::");
}

TEST(Wiring, CablesOfAFile) {
  const std::string file = fileOf("rc0p1 rc1p0\n2/rc2p0 0/rc0p2:1\nrc2p1 rc1p2 # the last\n");
  EXPECT_HAS(setUpWith(3, "WEFT_MESH_FILE", file), "rc0p1:1 -> rc1p0:1");
}

TEST(Wiring, ACrossedCableIsNamed) {
  const std::string file = fileOf("rc0p1 rc2p0\nrc0p2 rc1p0\nrc1p2 rc2p1\n");
  const std::string why = setUpWith(3, "WEFT_MESH_FILE", file);
  EXPECT_HAS(why, "does not carry bytes");
  // By one of its ends at least: on a busy machine what the other hears of it may be late.
  const auto has = [&](const char* words) { return why.find(words) != std::string::npos; };
  EXPECT_TRUE(has("is cabled to rc1p0:1 of rank 1") || has("is cabled to rc0p1:1 of rank 0"))
      << why;
  EXPECT_HAS(why, "fix:");
}

TEST(Wiring, AMissingCableIsNamed) {
  const std::string file = fileOf("rc0p1 rc1p0\nrc1p2 rc2p1\n");
  EXPECT_HAS(setUpWith(3, "WEFT_MESH_FILE", file), "no edge between rank 0");
}

TEST(Wiring, APortThatIsDownIsNamed) {
  run("cable 1 2 down");
  const std::string why = setUpWith(kCards, "WEFT_ROCE_GID", "auto");
  EXPECT_HAS(why, "no edge between rank 1");
  EXPECT_HAS(why, "rc1p2:1 is down");
  EXPECT_HAS(why, "rc2p1:1 is down");
  run("cable 1 2 up");
}

TEST(Wiring, TwoPortsOfARankInOneSubnet) {
  run("/bin/ip address add 10.7.0.1/24 dev c1p2 && /bin/ip address del 10.0.3.0/31 dev c1p2");
  run("/bin/ip address add 10.7.0.2/24 dev c1p3 && /bin/ip address del 10.0.4.0/31 dev c1p3");
  const std::string why = setUpWith(kCards, "WEFT_ROCE_GID", "auto");
  EXPECT_HAS(why, "rc1p2:1 of rank 1");
  EXPECT_HAS(why, "(10.7.0.1/24) and rc1p3:1 (10.7.0.2/24) are in one subnet");
  run("/bin/ip address add 10.0.3.0/31 dev c1p2 && /bin/ip address del 10.7.0.1/24 dev c1p2");
  run("/bin/ip address add 10.0.4.0/31 dev c1p3 && /bin/ip address del 10.7.0.2/24 dev c1p3");
}

TEST(Wiring, NoGidOfThatKind) {
  EXPECT_HAS(setUpWith(2, "WEFT_ROCE_GID", "10.99.0.0/16"),
             "has no RoCE v2 GID that WEFT_ROCE_GID allows");
  run("/bin/ip address del 10.0.0.0/31 dev c0p1");
  EXPECT_HAS(setUpWith(2, "WEFT_ROCE_GID", "ipv4"), "rc0p1:1 has no RoCE v2 GID");
  EXPECT_HAS(setUpWith(2, "WEFT_ROCE_GID", "auto"), "fe80::");
  run("/bin/ip address add 10.0.0.0/31 dev c0p1");
}

TEST(Wiring, TheSmallerMtuOfTwo) {
  run("/bin/ip link set c1p0 mtu 1500");
  EXPECT_HAS(setUpWith(2, "WEFT_ROCE_GID", "auto"), "MTU 1024");
  run("/bin/ip link set c1p0 mtu 9000");
}

TEST(Wiring, NoSuchDevice) {
  EXPECT_HAS(setUpWith(2, "VERBS_DEVICES", "mlx"), "WEFT_NET_DEVICES allows none of the devices");
}

// ---- what the machine lacks ---------------------------------------------------------------------

TEST(Machine, TooLittleMemoryMayBeLocked) {
  const std::string why = setUpSays(2, [](transport::Rank&) {
    const rlimit limit{65536, 65536};
    REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    REQUIRE(::syscall(SYS_capset, &header, none) == 0);
  });
  EXPECT_HAS(why, "may lock 65536 bytes (RLIMIT_MEMLOCK); fix: ulimit -l unlimited");
}

TEST(Machine, NoLibibverbs) {
  std::string name = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1";
  ASSERT_EQ(std::rename(name.c_str(), (name + ".away").c_str()), 0);
  EXPECT_HAS(setUpWith(2, "WEFT_ROCE_GID", "auto"), "libibverbs is not installed");
  ASSERT_EQ(std::rename((name + ".away").c_str(), name.c_str()), 0);
}

// ---- cables pulled amid traffic -----------------------------------------------------------------

// Puts a flag to each peer again and again, each after the peer's last one has come.
class Traffic {
 public:
  Traffic(transport::Rank& rank, transport::Transport& transport)
      : rank_(rank), transport_(transport) {}

  void step() {
    for (std::uint32_t peer = 0; peer < rank_.ranks; ++peer)
      if (peer != rank_.rank && !isDown(peer)) stepWith(peer);
    transport::Event events[8];
    const int count = transport_.poll(events, 8);
    for (int i = 0; i < count; ++i) {
      if (events[i].kind != transport::Event::LinkDown) continue;
      down.push_back(events[i].peer);
      why = transport_.lastError().text();
    }
    ::usleep(100);  // two cores for all
  }
  bool isDown(std::uint32_t peer) const {
    return std::find(down.begin(), down.end(), peer) != down.end();
  }

  std::vector<std::uint32_t> down;
  std::string why;
  std::array<std::uint64_t, kCards> rounds{};

 private:
  void stepWith(std::uint32_t peer) {
    const transport::WindowLayout& layout = transport_.layout();
    const std::uint64_t at = transport::arrivalOffset(layout, 0, rank_.rank);
    if (transport_.own().arrivals()[peer].flag.load(std::memory_order_acquire) < rounds[peer])
      return;
    const transport::PutResult result =
        transport_.put({.peer = peer,
                        .arrival = at,
                        .flag = rounds[peer] + 1,
                        .src = transport_.own().arena(),
                        .bytes = 8192,
                        .target = transport::arenaOffset(layout, 1, 8192 * rank_.rank)});
    if (result == transport::PutResult::Done || result == transport::PutResult::Pending)
      ++rounds[peer];
  }

  transport::Rank& rank_;
  transport::Transport& transport_;
};

void stepUntil(Traffic& traffic, int ms, const std::function<bool()>& what) {
  for (const Deadline deadline = Deadline::in(ms); !deadline.expired() && !what();) traffic.step();
}

// How often threads that make progress between calls have slept.
int sleepsOfProgress() {
  int sleeps = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, line;
    std::getline(std::ifstream(task.path() / "comm"), name);
    std::ifstream status(task.path() / "status");
    while (name == "weft-progress" && std::getline(status, line))
      if (line.starts_with("voluntary_ctxt_switches:")) sleeps += std::stoi(line.substr(24));
  }
  return sleeps;
}

// Only what a peer needs wakes a rank that is in no call: the first write to it, and nothing later.
TEST(Machine, ARankInNoCallSleeps) {
  transport::runAllWell(transport::verbsFabric(), 2, [](transport::Rank& rank) {
    const auto transport = rank.make(transport::smallLayout(rank.ranks));
    Traffic traffic(rank, *transport);
    if (rank.rank == 1) transport->releaseProgress();
    ::usleep(300000);
    const int before = sleepsOfProgress();
    rank.barrier();
    if (rank.rank == 0) stepUntil(traffic, kPatienceMs, [&] { return traffic.rounds[1] == 1; });
    if (rank.rank == 0) stepUntil(traffic, 1000, [] { return false; });
    rank.barrier();
    if (rank.rank == 1) {
      REQUIRE(before > 0, "no thread makes progress");
      REQUIRE(sleepsOfProgress() - before < 20, sleepsOfProgress() - before, " times");
      transport->acquireProgress();
      const auto& arrival = transport->own().arrivals()[0];
      stepUntil(traffic, kPatienceMs,
                [&] { return arrival.flag.load(std::memory_order_acquire) != 0; });
      REQUIRE(arrival.flag.load() == 1);
    }
    rank.barrier();
  });
}

// Counts in pages that forked ranks share.
class SharedCount {
 public:
  SharedCount()
      : memory_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~SharedCount() { ::munmap(memory_, 4096); }
  std::atomic<int>& operator*() { return *static_cast<std::atomic<int>*>(memory_); }

 private:
  void* memory_;
};

void pullAmidTraffic(std::uint32_t seed) {
  SharedCount told;
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t a = below(kCards - 1);
  const std::uint32_t b = a + 1 + below(kCards - 1 - a);
  const std::uint64_t when = 20 + below(50);
  transport::runAllWell(transport::verbsFabric(), kCards, [&](transport::Rank& rank) {
    const auto transport = rank.make(transport::smallLayout(kCards));
    Traffic traffic(rank, *transport);
    rank.barrier();
    const std::uint32_t puller = (b + 1) % kCards == a ? (b + 2) % kCards : (b + 1) % kCards;
    const auto atLeast = [&](std::uint64_t rounds) {
      return std::count_if(traffic.rounds.begin(), traffic.rounds.end(),
                           [&](std::uint64_t r) { return r >= rounds; }) >= kCards - 1;
    };
    if (rank.rank == puller) {
      stepUntil(traffic, kPatienceMs, [&] { return atLeast(when); });
      const std::string command = text("cable ", a, ' ', b, " down");
      REQUIRE(std::system(command.c_str()) == 0);
    }
    const std::uint32_t other = rank.rank == a ? b : a;
    const bool mine = rank.rank == a || rank.rank == b;
    stepUntil(traffic, kPatienceMs, [&] { return mine ? traffic.isDown(other) : *told == 2; });
    if (mine) {
      const std::string port = text("rc", rank.rank, 'p', other, ":1");
      REQUIRE(traffic.down == std::vector<std::uint32_t>{other}, "link down: ", traffic.why);
      REQUIRE(traffic.why.find(port) != std::string::npos, traffic.why);
      REQUIRE(traffic.why.find(text("rank ", other)) != std::string::npos, traffic.why);
      if (rank.rank == a) std::printf("seed %u: %s\n", seed, traffic.why.c_str());
      std::fflush(stdout);
      ++*told;
      stepUntil(traffic, kPatienceMs, [&] { return *told == 2; });
    }
    REQUIRE(*told == 2, "an end of the cable does not report");
    REQUIRE(mine || traffic.down.empty(), traffic.why);
    rank.barrier();
  });
  run(text("cable ", a, ' ', b, " up"));
}

TEST(Cable, PulledAmidTraffic) {
  const char* const asked = std::getenv("RXE_PULLS");
  const std::uint32_t pulls = asked == nullptr ? 3 : static_cast<std::uint32_t>(std::atoi(asked));
  for (std::uint32_t seed = 1; seed <= pulls && !HasFailure(); ++seed) pullAmidTraffic(seed);
}

}  // namespace
}  // namespace weft::verbs
