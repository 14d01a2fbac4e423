// SPDX-License-Identifier: Apache-2.0
// Worlds that meet over a hub on each host. Here hosts are names, of ranks that are threads or processes.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <new>
#include <random>
#include <sstream>

#include "bootstrap/handshake.h"
#include "bootstrap/host_hub.h"
#include "bootstrap/hub_messages.h"
#include "bootstrap/joiner.h"
#include "child.h"
#include "helpers.h"
#include "net/local_socket.h"

namespace weft::bootstrap {
namespace {

using namespace weft::test;

int hubThreads() { return threadsNamed("weft-hub"); }

// With `each` ranks a host, which have a hub.
Part onHost(Part part, int each) {
  part.options.root = quickRoot();
  part.options.hubFrom = 2;
  part.options.host = "host" + std::to_string(part.rank / each);
  return part;
}

std::vector<Part> onHosts(std::vector<Part> parts, int each) {
  for (Part& part : parts) part = onHost(part, each);
  return parts;
}

std::string nameOfHub(const UniqueId& id, const std::string& host) {
  Hello hello;
  hello.version = libraryVersion();
  return hubName(contentOf(id).secret, hello, host);
}

// Of the hub of this host: one socket that listens, and one for each rank that is connected.
std::ptrdiff_t socketsAt(const UniqueId& id, const std::string& host) {
  std::ifstream table("/proc/net/unix");
  const std::string name = nameOfHub(id, host);
  std::ptrdiff_t count = 0;
  for (std::string line; std::getline(table, line);) count += line.ends_with(name);
  return count;
}

std::vector<std::byte> partOf(int rank, int round) {
  return std::vector<std::byte>(static_cast<std::size_t>(1 + (rank * 977 + round * 4999) % 60000),
                                static_cast<std::byte>(rank + round));
}

TEST(Hub, TheRootHasOneConnectionAHost) {
  const UniqueId id = newId();
  std::vector<Joined> results = joinAll(id, onHosts(healthyParts(12), 4));
  expectAllJoined(results);
  // Whoever looks for a root that had this port before is shown out.
  EXPECT_TRUE(eventually(10000, [&] { return connectionsAt(id) == 3; })) << connectionsAt(id);
  EXPECT_EQ(hubThreads(), 3);
  results.clear();
  EXPECT_TRUE(eventually(10000, [] { return hubThreads() + rootThreads() == 0; }));
}

TEST(Hub, RoundsOfAllSizesGoThrough) {
  const UniqueId id = newId();
  constexpr int kRanks = 9;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      const Joined mine = join(id, onHost({.rank = rank, .size = kRanks}, 3));
      ASSERT_TRUE(mine.status.ok()) << mine.status.text();
      for (int r = 0; r < kRanks; ++r)
        EXPECT_EQ(mine.bootstrap->ranks()[static_cast<std::size_t>(r)].rank, r);
      for (int round = 0; round < 5; ++round) {
        std::vector<std::vector<std::byte>> all;
        const Status status =
            mine.bootstrap->allGather(partOf(rank, round), &all, Deadline::in(20000));
        ASSERT_TRUE(status.ok()) << status.text();
        for (int r = 0; r < kRanks; ++r)
          EXPECT_EQ(all[static_cast<std::size_t>(r)], partOf(r, round));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Hub, AnAbandonTellsTheRanksOfAllHostsWhy) {
  std::vector<Joined> results = joinAll(newId(), onHosts(healthyParts(6), 2));
  expectAllJoined(results);
  results[3].bootstrap->abandon(Status::error(Code::SystemError, "no memory; fix: buy some"));
  for (const std::size_t rank : {0u, 2u, 5u}) {
    std::vector<std::vector<std::byte>> all;
    const Status heard = results[rank].bootstrap->allGather({}, &all, Deadline::in(10000));
    expectHas(heard.text(), "rank 3 (host ");
    expectHas(heard.text(), "no memory; fix: buy some");
  }
}

// Whatever is wrong, all are told what a star would tell them.
TEST(Hub, DisagreementsAreToldAsWithoutIt) {
  std::mt19937 random(15);
  const auto one = [&](int of) {
    return static_cast<std::size_t>(random() % static_cast<unsigned>(of));
  };
  for (int trial = 0; trial < 8; ++trial) {
    std::vector<Part> parts = healthyParts(6);
    for (int wrong = 0; wrong < 2; ++wrong) switch (one(4)) {
        case 0:
          parts[one(6)].rank = static_cast<int>(one(8));
          break;
        case 1:
          parts[one(6)].size = 5 + static_cast<int>(one(3));
          break;
        case 2:
          parts[one(6)].config = "a=1;b=2";
          break;
        default:
          parts[one(6)].options.version = "9.9.9";
      }
    for (Part& part : parts) part.timeoutMs = 3000;
    const std::vector<Joined> star = joinAll(newId(), parts);
    std::vector<Part> relayed = onHosts(parts, 3);
    const std::vector<Joined> hubs = joinAll(newId(), relayed);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(hubs[i].status.code(), star[i].status.code()) << trial;
      if (star[i].status.code() != Code::Timeout) {
        EXPECT_EQ(hubs[i].status.text(), star[i].status.text()) << trial;
      }
    }
  }
}

// Of ranks whose hub speaks another protocol than the root, the root knows but the one that has it.
TEST(Hub, OtherProtocolsAreToldToAll) {
  std::vector<Part> parts = onHosts(healthyParts(6), 3);
  for (std::size_t rank = 3; rank < 6; ++rank) parts[rank].options.wire = {2, 3};
  expectHas(expectSameFailure(joinAll(newId(), parts), Code::Mismatch), "protocols 2-3 vs 1-1");
}

TEST(Hub, MissingRanksAreNamedToAllAtTheEarliestDeadline) {
  std::vector<Part> parts = onHosts(healthyParts(6), 3);
  parts.erase(parts.begin() + 4);
  const auto start = Deadline::Clock::now();
  const std::string text = expectSameFailure(joinWithALastOne(parts, 1), Code::Timeout);
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
  expectHas(text, "waiting for 1 of 6 ranks: 4.");
}

TEST(Hub, ServesOneRendezvousAfterTheOther) {
  UniqueId id;
  const std::string address = "127.0.0.1:" + std::to_string(freePort());
  ASSERT_TRUE(uniqueIdFromAddress(address, "s", Deadline::in(5000), &id).ok());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 6; ++rank)
    threads.emplace_back([&, rank] {
      for (int time = 0; time < 4; ++time) {
        const Joined mine = join(id, onHost({.rank = rank, .size = 6, .timeoutMs = 20000}, 3));
        ASSERT_TRUE(mine.status.ok()) << rank << ", " << time << ": " << mine.status.text();
        std::vector<std::vector<std::byte>> all;
        ASSERT_TRUE(mine.bootstrap->allGather({}, &all, Deadline::in(20000)).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Who has its name but is none costs a part of the time, and nobody is kept out.
TEST(Hub, AStrangerWithItsNameKeepsNobodyOut) {
  const UniqueId id = newId();
  net::Socket mute;
  ASSERT_EQ(net::listenAtName(nameOfHub(id, "host0"), &mute), 0);
  std::vector<Part> parts = onHosts(healthyParts(4), 2);
  for (Part& part : parts) part.options.hubPatienceMs = 400;
  expectAllJoined(joinAll(id, parts));
}

// Others may come first, and go, as where the first of them is all that the root needs to give up.
TEST(Hub, WaitsForTheRankThatMadeIt) {
  const UniqueId id = newId();
  const std::string name = nameOfHub(id, "host0");
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const net::Socket root(ends[1]);
  HubSpec spec{.leader = PeerName(0, "host0"),
               .listener = {},
               .secret = contentOf(id).secret,
               .root = std::make_unique<net::Stream>(net::Socket(ends[0])),
               .rootName = "root"};
  ASSERT_EQ(net::listenAtName(name, &spec.listener), 0);
  ASSERT_TRUE(startHub(std::move(spec)).ok());
  const auto comeAndGo = [&](int rank) {
    const Hello hello{{}, idTag(contentOf(id).secret), rank, 2, {}, libraryVersion()};
    net::Socket socket;
    ASSERT_EQ(net::connectToName(name, &socket), 0) << rank;
    std::unique_ptr<net::Stream> stream;
    const Deadline limit = Deadline::in(20000);
    Joiner joiner(contentOf(id), hello, limit);
    ASSERT_EQ(joiner.tryHub(std::move(socket), 1 << 20, limit, &stream), Joiner::Result::Joined);
    stream->tell(net::MessageType::Info, encode(InfoMessage{PeerName(rank, "host0"), "", 20000}),
                 limit);
    net::Message served{};
    ASSERT_TRUE(stream->awaitMessage(limit, &served).ok()) << rank;
  };
  comeAndGo(1);
  EXPECT_FALSE(eventually(300, [] { return hubThreads() == 0; }));
  comeAndGo(0);
  EXPECT_TRUE(eventually(10000, [] { return hubThreads() == 0; }));
}

// ---- as processes ----

// What the processes of a test tell each other.
struct Board {
  std::atomic<int> met{0};
  std::atomic<bool> listens{false};
  std::atomic<bool> held{false};
  std::atomic<bool> go{false};
};

// Between a rank and the root: keeps from the root what the rank says after its handshake, and hangs up on the rank once
// the root does.
std::string holdTheThirdMessage(const net::Address& at, const net::Address& root, Board& board) {
  net::Address address;
  int error = 0;
  net::Socket listener, up;
  if (!net::listenAt(at, &listener, &address, &error).ok()) return "the port is taken";
  board.listens = true;
  if (!net::waitReadable(listener, Deadline::in(30000))) return "nobody came";
  bool exhausted = false;
  const net::Socket rank = net::acceptFrom(listener, &address, &exhausted);
  if (!net::connectTo(root, Deadline::in(30000), &up, &error).ok()) return "the root is gone";
  std::byte bytes[4096];
  for (int heard = 0;;) {
    pollfd ends[] = {{heard < 3 ? rank.fd() : -1, POLLIN, 0}, {up.fd(), POLLIN, 0}};
    if (::poll(ends, 2, 30000) < 1) return "the root did not close";
    const bool down = ends[1].revents != 0;
    const ssize_t size = ::read(down ? up.fd() : rank.fd(), bytes, sizeof bytes);
    if (size <= 0) return down && heard == 3 ? "" : "closed in the handshake";
    if (!down && ++heard == 3) {
      board.held = true;
    } else if (::write(down ? rank.fd() : up.fd(), bytes, static_cast<std::size_t>(size)) != size) {
      return "not passed on";
    }
  }
}

// Says what it heard, also of a round after all have met and the test says so.
std::string meetInChild(const UniqueId& id, const Part& part, Board& board, bool round) {
  const Joined mine = join(id, part);
  if (!mine.status.ok()) return mine.status.text();
  board.met.fetch_add(1);
  while (!board.go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!round) sleep(60);
  std::vector<std::vector<std::byte>> all;
  return mine.bootstrap->allGather({}, &all, Deadline::in(3000)).text();
}

// Four ranks on host0, of which rank 1 makes the hub, one on host1; the last of those wanted comes late.
class HubOfProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    awaitSingleThread();
    void* const page =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    board_ = new (page) Board();
  }
  void TearDown() override { ::munmap(board_, sizeof(Board)); }

  // The root is a process of its own, with an id that the others know.
  void startRoot(const RootOptions& options = quickRoot()) {
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    root_ = std::make_unique<Child>([&] {
      const UniqueId mine = newId(options);
      if (write(fds[1], mine.bytes.data(), mine.bytes.size()) < 0) _exit(1);
      sleep(60);
      return std::string();
    });
    ::close(fds[1]);
    ASSERT_EQ(read(fds[0], id_.bytes.data(), id_.bytes.size()),
              static_cast<ssize_t>(id_.bytes.size()));
    ::close(fds[0]);
  }
  void start(int rank, std::int64_t timeoutMs, bool round = true) {
    start(onHost({.rank = rank, .size = 5, .timeoutMs = timeoutMs}, 4), round);
  }
  void start(const Part& part, bool round = true) { start(id_, part, round); }
  void start(const UniqueId& id, const Part& part, bool round = true) {
    ranks_[part.rank] = std::make_unique<Child>(
        [this, id, part, round] { return meetInChild(id, part, *board_, round); });
  }
  // Rank 0, the last one, alone on its host.
  void startElsewhere() {
    Part elsewhere = onHost({.rank = 0, .size = 5, .timeoutMs = 30000}, 4);
    elsewhere.options.host = "host2";
    start(elsewhere);
  }
  // The id with the address of a process between a rank and the root.
  UniqueId idBehind(std::unique_ptr<Child>* between) {
    IdContent content = contentOf(id_);
    net::Address at = loopbackV4();
    at.port = freePort();
    const net::Address root = std::exchange(content.addresses, {at}).front();
    *between =
        std::make_unique<Child>([=, this] { return holdTheThirdMessage(at, root, *board_); });
    EXPECT_TRUE(eventually(30000, [&] { return board_->listens.load(); }));
    return encodeId(content);
  }
  // Rank 1, and once it has the hub of its host, the others of that host but rank 0.
  void startHost(std::int64_t timeoutMs, bool round = true, std::int64_t silenceMs = 5000) {
    start(1, timeoutMs, round);
    ASSERT_TRUE(eventually(30000, [&] { return socketsAt(id_, "host0") == 2; }));
    for (const int rank : {2, 3}) {
      Part part = onHost({.rank = rank, .size = 5, .timeoutMs = timeoutMs}, 4);
      part.options.hubSilenceMs = silenceMs;
      start(part, round);
    }
  }
  // Rank 4, alone on its host. All but rank 0 have come to their hubs, and soon wait for it.
  void startLast(std::int64_t timeoutMs) {
    start(4, timeoutMs);
    ASSERT_TRUE(eventually(
        30000, [&] { return socketsAt(id_, "host0") == 4 && socketsAt(id_, "host1") == 2; }));
    std::vector<pid_t> pids{root_->pid()};
    for (const auto& rank : ranks_)
      if (rank) pids.push_back(rank->pid());
    ASSERT_TRUE(eventually(30000, [&] { return areStill(pids); }));
  }
  void expectAllSay(std::initializer_list<int> ranks, const std::string& what) {
    std::string first;
    for (const int rank : ranks) {
      const std::string text = ranks_[rank]->result();
      expectHas(text, what);
      if (first.empty()) first = text;
      EXPECT_EQ(text, first) << "of rank " << rank;
    }
  }
  // All five have met, and make their round once `event` has come.
  void afterAllHaveMet(const std::function<void()>& event) {
    ASSERT_TRUE(eventually(30000, [&] { return board_->met == 5; }));
    event();
    board_->go = true;
  }
  std::string named(int rank) {
    return ", pid " + std::to_string(ranks_[rank]->pid()) + ") died or closed";
  }

  UniqueId id_;
  Board* board_ = nullptr;
  std::unique_ptr<Child> root_;
  std::unique_ptr<Child> ranks_[5];
};

TEST_F(HubOfProcesses, AKilledRankIsNamed) {
  startRoot();
  startHost(30000);
  startLast(30000);
  ranks_[2]->kill();
  expectAllSay({1, 3, 4}, named(2));
}

TEST_F(HubOfProcesses, AKilledHubIsNamedBeforeAllHaveMet) {
  startRoot();
  startHost(30000);
  startLast(30000);
  const auto killed = Deadline::Clock::now();
  ranks_[1]->kill();
  expectAllSay({2, 3, 4}, named(1));
  EXPECT_LT(Deadline::Clock::now() - killed, kSoon);
}

TEST_F(HubOfProcesses, AKilledHubIsNamedBetweenRounds) {
  startRoot();
  startHost(30000);
  start(4, 30000);
  start(0, 30000, false);
  afterAllHaveMet([&] { ranks_[1]->kill(); });
  expectAllSay({2, 3, 4}, named(1));
}

// Its host's ranks hear nothing, and the others nothing of them: all name it.
TEST_F(HubOfProcesses, AStoppedHubIsNamedInARound) {
  startRoot();
  startHost(30000);
  start(4, 30000);
  start(0, 30000);
  afterAllHaveMet([&] { ranks_[1]->stop(); });
  expectHas(ranks_[4]->result(),
            "waiting for 4 of 5 ranks: 0-3, whom the process of rank 1 connects.");
  const std::string text = ranks_[2]->result();
  expectHas(text, "rank 2 heard nothing from rank 1 (host ");
  expectHas(text, ", which connects its host to the bootstrap root (host ");
}

// Others of its host are not blamed for it.
TEST_F(HubOfProcesses, OfAStoppedHubOnlyItsRankIsMissed) {
  startRoot();
  start(1, 30000);
  ASSERT_TRUE(eventually(30000, [&] { return socketsAt(id_, "host0") == 2; }));
  ranks_[1]->stop();
  start(2, 2000);
  start(3, 2000);
  start(4, 30000);
  const std::string text = ranks_[4]->result();
  EXPECT_EQ(text, ranks_[2]->result());
  EXPECT_EQ(text, ranks_[3]->result());
  // It may have been seated before.
  const bool named = text.find(" ranks: 0.") != std::string::npos;
  EXPECT_TRUE(named || text.find(" ranks: 0-1.") != std::string::npos) << text;
}

// All have come, so the root is closed to whoever comes by itself: of a thousand ranks on a few cores the hub gets its
// share of them late. Its ranks are held until then, as they would return to the root before.
TEST_F(HubOfProcesses, ASlowHubIsWaitedForOnceAllHaveCome) {
  startRoot();
  startHost(30000, true, 1000);
  startLast(30000);
  for (const int rank : {2, 3, 1}) ranks_[rank]->stop();
  startElsewhere();
  ASSERT_TRUE(eventually(30000, [&] { return board_->met == 2; }));
  for (const int rank : {2, 3}) ranks_[rank]->goOn();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(2500));  // they ask the hub, and then the root
  EXPECT_EQ(board_->met, 2);
  ranks_[1]->goOn();
  afterAllHaveMet([] {});
  if (HasFatalFailure()) return;
  for (const auto& rank : ranks_) EXPECT_EQ(rank->result(), "") << rank->pid();
}

// Rank 2 has lost its hub and been let in by the root, which closes before the rank has said who it is.
TEST_F(HubOfProcesses, WhomTheRootClosesToIsToldByItsHub) {
  RootOptions patient = quickRoot();
  patient.handshakeMs = 30000;
  startRoot(patient);
  std::unique_ptr<Child> between;
  const UniqueId held = idBehind(&between);
  start(1, 30000);
  ASSERT_TRUE(eventually(30000, [&] { return socketsAt(id_, "host0") == 2; }));
  start(3, 30000);
  Part second = onHost({.rank = 2, .size = 5, .timeoutMs = 30000}, 4);
  second.options.hubSilenceMs = 200;
  start(held, second);
  startLast(30000);
  for (const int rank : {3, 1}) ranks_[rank]->stop();
  ASSERT_TRUE(eventually(30000, [&] { return board_->held.load(); }));
  startElsewhere();
  ASSERT_TRUE(eventually(30000, [&] { return board_->met == 2; }));
  EXPECT_EQ(between->result(), "");
  for (const int rank : {3, 1}) ranks_[rank]->goOn();
  afterAllHaveMet([] {});
  if (HasFatalFailure()) return;
  for (const auto& rank : ranks_) EXPECT_EQ(rank->result(), "") << rank->pid();
}

TEST_F(HubOfProcesses, TheDeathOfTheRootIsToldToAll) {
  startRoot();
  startHost(30000);
  startLast(30000);
  root_->kill();
  for (const int rank : {1, 2, 3, 4}) {
    const std::string text = ranks_[rank]->result();
    expectHas(text, "bootstrap root (host ");
    expectHas(text, ", pid " + std::to_string(root_->pid()) + ") died or closed");
  }
}

// ---- its messages ----

TEST(HubMessages, ArriveInOrderAndNoneIsTooLarge) {
  std::vector<Passed> all;
  for (std::uint32_t i = 0; i < 40; ++i)
    all.push_back({i, net::MessageType::Gather, net::Bytes(i * 1531 % 61000, std::byte{3})});
  std::vector<Passed> arrived;
  for (const net::Bytes& body : encodePassed(all)) {
    EXPECT_LE(body.size(), net::Channel::kMaxFrameAfter);
    std::vector<Passed> some;
    ASSERT_TRUE(decodePassed(body, &some));
    arrived.insert(arrived.end(), some.begin(), some.end());
  }
  ASSERT_EQ(arrived.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(arrived[i].body, all[i].body);
}

TEST(HubMessages, CutAnywhereNothingDecodes) {
  Member member;
  member.hello.version = "1";
  member.info.who = {3, "a", 5, "b"};
  const net::Bytes introduced = encode(member);
  const net::Bytes passed = encodePassed({{7, net::MessageType::Info, introduced}})[0];
  const net::Bytes named = encode(HubName{{3, "a", 5}, "host b, pid 9"});
  std::vector<Passed> all;
  HubName name;
  for (std::size_t size = 0; size < passed.size(); ++size)
    EXPECT_EQ(decodePassed(net::ByteView(passed).first(size), &all), size == 0);
  for (std::size_t size = 0; size < introduced.size(); ++size)
    EXPECT_FALSE(decode(net::ByteView(introduced).first(size), &member));
  for (std::size_t size = 0; size < named.size(); ++size)
    EXPECT_FALSE(decode(net::ByteView(named).first(size), &name));
}

}  // namespace
}  // namespace weft::bootstrap
