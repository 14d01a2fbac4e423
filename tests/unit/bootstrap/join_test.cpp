// SPDX-License-Identifier: Apache-2.0
// Healthy and failing rendezvous with ranks as threads.
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>

#include "base/log.h"
#include "helpers.h"
#include "tests/unit/base/scoped_env.h"

namespace weft::bootstrap {
namespace {

using namespace weft::test;

class JoinOfSize : public testing::TestWithParam<int> {};

TEST_P(JoinOfSize, EverybodyGetsEverybodysName) {
  const int size = GetParam();
  std::vector<Part> parts = healthyParts(size);
  for (Part& part : parts) part.config = "A=1;B=x";
  const std::vector<Joined> results = joinAll(newId(), parts);
  expectAllJoined(results);
  for (const Joined& result : results) {
    ASSERT_TRUE(result.bootstrap);
    const std::vector<PeerName>& names = result.bootstrap->ranks();
    ASSERT_EQ(names.size(), static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank)
      EXPECT_EQ(names[static_cast<std::size_t>(rank)], nameOfThisProcess(rank));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, JoinOfSize, testing::Values(1, 2, 3, 5, 8, 16));

TEST(Join, LateRank) {
  std::vector<Part> parts = healthyParts(3);
  parts[1].delayMs = 300;
  expectAllJoined(joinAll(newId(), parts));
}

TEST(Join, LargestConfig) {
  std::vector<Part> parts = healthyParts(20);
  for (Part& part : parts) part.config = "K=" + std::string(kMaxConfigBytes - 2, 'v');
  expectAllJoined(joinAll(newId(), parts));
}

// Runs body(bootstrap) for every joined rank, each on its own thread.
void onAll(std::vector<Joined>* results, const std::function<void(Bootstrap*, int)>& body) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results->size(); ++i) {
    threads.emplace_back([&, i] { body((*results)[i].bootstrap.get(), static_cast<int>(i)); });
  }
  for (std::thread& thread : threads) thread.join();
}

net::Bytes partOf(int rank, int round, std::size_t size) {
  net::Bytes part(size);
  for (std::size_t i = 0; i < size; ++i)
    part[i] = static_cast<std::byte>(i + static_cast<std::size_t>(rank * 31 + round));
  return part;
}

TEST(AllGather, RoundsOfDifferentSizes) {
  std::vector<Joined> results = joinAll(newId(), healthyParts(4));
  expectAllJoined(results);
  onAll(&results, [](Bootstrap* bootstrap, int rank) {
    int round = 0;
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kMaxPartBytes}) {
      std::vector<net::Bytes> all;
      // Every rank has its own length.
      const auto lengthOf = [&](int r) {
        return size > 3 ? size - static_cast<std::size_t>(r) : size;
      };
      const Status status =
          bootstrap->allGather(partOf(rank, ++round, lengthOf(rank)), &all, Deadline::in(10000));
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(all.size(), 4u);
      for (int r = 0; r < 4; ++r)
        EXPECT_TRUE(all[static_cast<std::size_t>(r)] == partOf(r, round, lengthOf(r)));
    }
    bootstrap->close();
    bootstrap->close();
    std::vector<net::Bytes> all;
    EXPECT_EQ(bootstrap->allGather({}, &all, Deadline::in(10)).code(), Code::InvalidUsage);
  });
}

TEST(AllGather, IsABarrier) {
  std::vector<Joined> results = joinAll(newId(), healthyParts(4));
  expectAllJoined(results);
  std::atomic<int> arrived{0};
  onAll(&results, [&](Bootstrap* bootstrap, int rank) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rank * 20));
    ++arrived;
    std::vector<net::Bytes> all;
    EXPECT_TRUE(bootstrap->allGather({}, &all, Deadline::in(10000)).ok());
    EXPECT_EQ(arrived.load(), 4);
  });
}

TEST(AllGather, TooLargeAPartHasNoEffect) {
  std::vector<Joined> results = joinAll(newId(), healthyParts(2));
  expectAllJoined(results);
  onAll(&results, [](Bootstrap* bootstrap, int) {
    std::vector<net::Bytes> all;
    EXPECT_EQ(bootstrap->allGather(net::Bytes(kMaxPartBytes + 1), &all, Deadline::in(1000)).code(),
              Code::InvalidArgument);
    EXPECT_TRUE(bootstrap->allGather(net::Bytes(3), &all, Deadline::in(10000)).ok());
  });
}

// All ranks but `except` gather and all get the same error.
std::string failedRound(std::vector<Joined>* results, int except, Code code,
                        std::int64_t ms = 10000) {
  std::vector<Joined> outcomes(results->size());
  onAll(results, [&](Bootstrap* bootstrap, int rank) {
    std::vector<net::Bytes> all;
    if (rank != except)
      outcomes[static_cast<std::size_t>(rank)].status =
          bootstrap->allGather({}, &all, Deadline::in(ms));
  });
  outcomes.erase(outcomes.begin() + except);
  return expectSameFailure(outcomes, code);
}

TEST(AllGather, MissingRankIsNamedAtTheDeadline) {
  std::vector<Joined> results = joinAll(newId(), healthyParts(3));
  expectAllJoined(results);
  const std::string text = failedRound(&results, 1, Code::Timeout, 1540);
  expectHas(text, "set-up round 1 timed out after ");
  expectHas(text, " s waiting for 1 of 3 ranks: 1");
}

TEST(AllGather, ARankThatLeftIsNamed) {
  std::vector<Joined> results = joinAll(newId(), healthyParts(3));
  expectAllJoined(results);
  results[2].bootstrap->close();
  expectHas(failedRound(&results, 2, Code::RemoteError), "rank 2 (host ");
}

TEST(AllGather, AbandonTellsTheOthersWhy) {
  std::vector<Joined> results = joinAll(newId(), healthyParts(3));
  expectAllJoined(results);
  results[0].bootstrap->abandon(
      Status::error(Code::OutOfMemory, "no memory for the staging slots"));
  const std::string text = failedRound(&results, 0, Code::OutOfMemory);
  expectHas(text, "rank 0 (host ");
  expectHas(text, "): no memory for the staging slots");
}

TEST(AllGather, AnAbandonIsHeardBetweenRounds) {
  std::vector<Joined> results = joinAll(newId(), healthyParts(2));
  EXPECT_TRUE(results[0].bootstrap->heard().ok());
  results[1].bootstrap->abandon(Status::error(Code::SystemError, "no memory left"));
  Status heard;
  for (const Deadline soon = Deadline::in(20000); heard.ok() && !soon.expired(); ::usleep(100))
    heard = results[0].bootstrap->heard();
  EXPECT_NE(heard.text().find("no memory left"), std::string::npos) << heard.text();
  EXPECT_EQ(results[0].bootstrap->heard().text(), heard.text());
}

TEST(JoinFailure, WorldSizesDiffer) {
  std::vector<Part> parts = healthyParts(4);
  parts[3].size = 8;
  const std::string text = expectSameFailure(joinAll(newId(), parts), Code::Mismatch);
  expectHas(text, "rank 3 says world size 8, ranks 0-2 say 4");
}

TEST(JoinFailure, WorldSizesDifferAndARankIsLate) {
  std::vector<Part> parts = healthyParts(4);
  parts[0].size = 8;
  parts[2].delayMs = 400;  // after the first error
  RootOptions options = quickRoot();
  options.lingerMs = 20000;
  expectSameFailure(joinAll(newId(options), parts), Code::Mismatch);
}

TEST(JoinFailure, FailsSoon) {
  std::vector<Part> parts = healthyParts(4);
  parts[1].size = 5;
  const auto start = Deadline::Clock::now();
  expectSameFailure(joinAll(newId(), parts), Code::Mismatch);
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
}

TEST(JoinFailure, DuplicateRank) {
  std::vector<Part> parts = healthyParts(4);
  parts[3].rank = 2;
  const std::string text = expectSameFailure(joinAll(newId(), parts), Code::Mismatch);
  expectHas(text, "rank 2 joined twice: host ");
}

TEST(JoinFailure, RankOutOfRange) {
  std::vector<Part> parts = healthyParts(4);
  parts[3].rank = 4;
  const std::string text = expectSameFailure(joinAll(newId(), parts), Code::Mismatch);
  expectHas(text, "rank 4 (host ");
  expectHas(text, "is outside of its world size 4");
}

TEST(JoinFailure, LibrariesDiffer) {
  std::vector<Part> parts = healthyParts(3);
  parts[1].options.version = "0.0.7";
  expectHas(expectSameFailure(joinAll(newId(), parts), Code::Mismatch),
            "rank 1: libweft 0.0.7, ranks 0,2: libweft ");
}

TEST(JoinFailure, ProtocolsDoNotOverlap) {
  std::vector<Part> parts = healthyParts(3);
  parts[2].options.version = "9.0.0";
  parts[2].options.wire = {7, 9};
  const std::string text = expectSameFailure(joinAll(newId(), parts), Code::Mismatch);
  expectHas(text, "rank 2: libweft 9.0.0, ranks 0-1: libweft ");
  expectHas(text, "protocols 7-9 vs 1-1");
}

TEST(JoinFailure, ConfigurationsDiffer) {
  std::vector<Part> parts = healthyParts(4);
  for (Part& part : parts)
    part.config = part.rank == 3 ? "WEFT_ALGO=tree;S=1" : "WEFT_ALGO=ring;S=1";
  expectHas(expectSameFailure(joinAll(newId(), parts), Code::Mismatch),
            "WEFT_ALGO differs: ring on 0-2, tree on 3");
}

TEST(JoinFailure, MissingRanksAreNamedToAllAtTheEarliestDeadline) {
  std::vector<Part> parts = healthyParts(6);
  parts.erase(parts.begin() + 4);
  parts.erase(parts.begin() + 1);
  const std::string text = expectSameFailure(joinWithALastOne(parts, 0), Code::Timeout);
  expectHas(text, "waiting for 2 of 6 ranks: 1,4");
  expectHas(text, "fix:");
}

TEST(JoinFailure, LocalArgumentErrorsAreImmediate) {
  const UniqueId id = newId();
  EXPECT_EQ(join(id, {.rank = -1, .size = 2}).status.code(), Code::InvalidArgument);
  EXPECT_EQ(join(id, {.rank = 0, .size = 0}).status.code(), Code::InvalidArgument);
  const std::string tooLong(kMaxConfigBytes + 1, 'c');
  EXPECT_EQ(join(id, {.rank = 0, .size = 1, .config = tooLong}).status.code(),
            Code::InvalidArgument);
  EXPECT_EQ(join(UniqueId{}, {.rank = 0, .size = 1}).status.code(), Code::InvalidArgument);
  expectAllJoined(joinAll(id, healthyParts(1)));
}

TEST(JoinFailure, StaleIdIsSaidSoon) {
  const UniqueId id = newId();
  expectAllJoined(joinAll(id, healthyParts(1)));
  ASSERT_TRUE(eventually(20000, [] { return rootThreads() == 0; }));
  const auto start = Deadline::Clock::now();
  const Joined again = join(id, {.rank = 0, .size = 1});
  EXPECT_EQ(again.status.code(), Code::InvalidArgument);
  expectHas(again.status.text(), "stale unique id, created ");
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
}

TEST(JoinFailure, StaleIdSaysItsAge) {
  const RefusingPort gone;
  for (const auto& [seconds, age] :
       {std::pair(600, "created 10 min ago: nobody listens at "),
        std::pair(3 * 86400, "created 3 days ago: nobody listens at ")}) {
    IdContent old;
    old.addresses = {gone.address()};
    old.createdUnixSeconds = std::time(nullptr) - seconds;
    const Joined joined = join(encodeId(old), {.rank = 0, .size = 1});
    EXPECT_EQ(joined.status.code(), Code::InvalidArgument);
    expectHas(joined.status.text(), age);
  }
}

TEST(JoinFailure, StaleIdWithAPortThatIsNowAnotherJobs) {
  const UniqueId another = newId();
  const RefusingPort gone;
  IdContent stale = contentOf(another);
  stale.secret.fill(std::byte{1});
  stale.addresses = {stale.addresses[0], gone.address()};
  const Joined joined = join(encodeId(stale), {.rank = 0, .size = 1});
  EXPECT_EQ(joined.status.code(), Code::InvalidArgument);
  expectHas(joined.status.text(), "any more but another job. fix: make a new id");
  expectAllJoined(joinAll(another, healthyParts(1)));
}

TEST(JoinFailure, ForeignIdIsSaidAtOnceAndHarmsNobody) {
  const UniqueId id = newId();
  IdContent stolen = contentOf(id);
  stolen.secret.fill(std::byte{1});
  const auto start = Deadline::Clock::now();
  const Joined foreign = join(encodeId(stolen), {.rank = 0, .size = 1});
  EXPECT_EQ(foreign.status.code(), Code::Authentication);
  expectHas(foreign.status.text(), "foreign unique id or secret");
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
  expectAllJoined(joinAll(id, healthyParts(2)));
}

// ---- ids that are an agreed address ----

UniqueId agreedId(const std::string& host, std::uint16_t port, const std::string& secret = "s") {
  UniqueId id;
  const Status status =
      uniqueIdFromAddress(host + ":" + std::to_string(port), secret, Deadline::in(5000), &id);
  EXPECT_TRUE(status.ok()) << status.text();
  return id;
}

TEST(AgreedAddress, RootMayComeLast) {
  std::vector<Part> parts = healthyParts(4);
  parts[0].delayMs = 300;
  expectAllJoined(joinAll(agreedId("127.0.0.1", freePort()), parts));
}

TEST(AgreedAddress, HostNames) {
  expectAllJoined(joinAll(agreedId("localhost", freePort()), healthyParts(3)));
}

TEST(AgreedAddress, ServesOneRendezvousAfterTheOther) {
  const UniqueId id = agreedId("127.0.0.1", freePort());
  for (int round = 0; round < 20; ++round) {
    std::vector<Joined> results = joinAll(id, healthyParts(3));
    expectAllJoined(results);
  }
}

TEST(AgreedAddress, TwoRootsOnOneHostAreOneDuplicate) {
  std::vector<Part> parts = healthyParts(3);
  parts[2].rank = 0;
  for (Part& part : parts) part.options.root = quickRoot();
  const UniqueId id = agreedId("127.0.0.1", freePort());
  expectHas(expectSameFailure(joinAll(id, parts), Code::Mismatch), "rank 0 joined twice");
}

TEST(AgreedAddress, WrongSecretIsNamed) {
  const std::uint16_t port = freePort();
  std::thread healthy([&] {
    std::vector<Part> parts = healthyParts(2);
    parts[1].delayMs = 2000;
    expectAllJoined(joinAll(agreedId("127.0.0.1", port), parts));
  });
  const Joined wrong = join(agreedId("127.0.0.1", port, "t"), {.rank = 1, .size = 2});
  healthy.join();
  EXPECT_EQ(wrong.status.code(), Code::Authentication);
  expectHas(wrong.status.text(), "rank 1 on host " + hostName());
  expectHas(wrong.status.text(), "foreign unique id or secret");
  expectHas(wrong.status.text(), "fix: hand the same id, or the same WEFT_SECRET, to all ranks");
}

TEST(AgreedAddress, NobodyThereIsATimeoutThatSaysWhere) {
  const RefusingPort refusing;
  const std::uint16_t port = refusing.address().port;
  const Joined alone = join(agreedId("127.0.0.1", port), {.rank = 1, .size = 2, .timeoutMs = 200});
  EXPECT_EQ(alone.status.code(), Code::Timeout);
  expectHas(alone.status.text(), "127.0.0.1:" + std::to_string(port));
  expectHas(alone.status.text(), "Connection refused");
}

// Rank 0 should listen there.
TEST(AgreedAddress, APortThatAnotherProgramHasIsNamed) {
  net::Socket other;
  net::Address bound;
  int error = 0;
  ASSERT_TRUE(net::listenAt(loopbackV4(), &other, &bound, &error).ok());
  const Joined root =
      join(agreedId("127.0.0.1", bound.port), {.rank = 0, .size = 2, .timeoutMs = 300});
  EXPECT_EQ(root.status.code(), Code::Timeout);
  expectHas(root.status.text(), "rank 0 cannot listen at " + bound.text());
  expectHas(root.status.text(), "choose another port");
}

TEST(AgreedAddress, Ipv6Loopback) {
  net::Address address;
  address.v6 = true;
  address.ip[15] = 1;
  net::Socket socket;
  net::Address bound;
  int error = 0;
  if (!net::listenAt(address, &socket, &bound, &error).ok())
    GTEST_SKIP() << "no IPv6 loopback here";
  socket.close();
  expectAllJoined(joinAll(agreedId("[::1]", bound.port), healthyParts(3)));
}

TEST(AgreedAddress, CommIdKnobNeedsASecret) {
  ScopedEnv address("WEFT_COMM_ID", ("127.0.0.1:" + std::to_string(freePort())).c_str());
  ScopedEnv none("WEFT_SECRET", nullptr);
  UniqueId id;
  expectHas(createUniqueId(&id).text(), "WEFT_COMM_ID needs a shared secret");
  ScopedEnv secret("WEFT_SECRET", "s");
  UniqueId again;
  ASSERT_TRUE(createUniqueId(&id).ok());
  ASSERT_TRUE(createUniqueId(&again).ok());
  EXPECT_EQ(id.bytes, again.bytes);
  expectAllJoined(joinAll(id, healthyParts(2)));
}

TEST(Create, OverTheNetworkInterface) {
  UniqueId id;
  ASSERT_TRUE(createUniqueId(&id).ok());
  expectAllJoined(joinAll(id, healthyParts(3)));
}

TEST(Create, OnTheInterfaceOfTheKnob) {
  ScopedEnv interface("WEFT_SOCKET_IFNAME", "lo");
  UniqueId id;
  ASSERT_TRUE(createUniqueId(&id).ok());
  for (const net::Address& address : contentOf(id).addresses) EXPECT_TRUE(address.loopback());
  expectAllJoined(joinAll(id, healthyParts(2)));
  ScopedEnv wrong("WEFT_SOCKET_IFNAME", "nosuch0");
  const Status status = createUniqueId(&id);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  expectHas(status.text(), "WEFT_SOCKET_IFNAME=nosuch0");
  expectHas(status.text(), "lo");
}

TEST(Leaks, RepeatedJoinsLeaveFdsAndThreadsWhereTheyWere) {
  expectAllJoined(joinAll(newId(), healthyParts(3)));  // libraries open their files now
  ASSERT_TRUE(eventually(20000, [] { return rootThreads() == 0; }));
  const std::size_t fds = openFds();
  for (int round = 0; round < 200; ++round) {
    std::vector<Joined> results = joinAll(newId(), healthyParts(3));
    expectAllJoined(results);
  }
  EXPECT_TRUE(eventually(20000, [] { return rootThreads() == 0; })) << rootThreads();
  EXPECT_EQ(openFds(), fds);
}

TEST(Leaks, AFailedRendezvousEndsToo) {
  const std::size_t fds = openFds();
  std::vector<Part> parts = healthyParts(3);
  parts[1].size = 7;
  expectSameFailure(joinAll(newId(), parts), Code::Mismatch);
  EXPECT_TRUE(eventually(20000, [&] { return rootThreads() == 0 && openFds() <= fds; }));
}

TEST(Leaks, AnUnusedIdIsGivenUp) {
  RootOptions options = quickRoot();
  options.unusedMs = 50;
  newId(options);
  EXPECT_TRUE(eventually(20000, [] { return rootThreads() == 0; }));
}

}  // namespace
}  // namespace weft::bootstrap
