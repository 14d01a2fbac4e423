// SPDX-License-Identifier: Apache-2.0
// What ranks without shared memory learn of each other over the control link: disagreement, delay,
// abort and the end of a communicator.
#include "control/control_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "bootstrap/admission.h"
#include "bootstrap/unique_id.h"
#include "net/socket.h"
#include "net/stream.h"
#include "remote_world.h"

namespace weft::control {
namespace {

using namespace weft::test;

void expectOneError(const Common& common, std::uint32_t ranks) {
  for (std::uint32_t r = 0; r < ranks; ++r)
    EXPECT_STREQ(common.said[r], common.said[0]) << "rank " << r;
}

TEST(ControlLink, AMismatchNamesBothCalls) {
  const double start = nowMs();
  const auto common = runThreads(3, [](Member& m) {
    m.call(planOf(10));
    const plan::Plan& plan = planOf(m.rank == 2 ? 2000 : 1000);
    const Status status = m.stuckIn(plan, 20000, (m.rank + 1) % 3);
    EXPECT_EQ(status.code(), Code::Mismatch) << status.text();
  });
  expectOneError(*common, 3);
  expectHas(common->said[0], "mismatched collective #2 on communicator w:");
  expectHas(common->said[0], "ranks 0-1 called all_reduce(count=1000, float, sum);");
  expectHas(common->said[0], "rank 2 called all_reduce(count=2000, float, sum);");
  EXPECT_LT(common->at[0] - start, kPromptMs);
}

TEST(ControlLink, TheCallOfALaterRankIsAwaited) {
  const auto common = runThreads(2, [](Member& m) {
    if (m.rank == 1) std::this_thread::sleep_for(milliseconds(5));
    m.watch->enter(planOf(m.rank == 1 ? 5 : 6), 1000, nullptr);
    if (m.rank == 0) m.note(m.watch->disagreement(1));
    if (m.rank == 1) m.awaitFirstError();
    m.watch->leave();
  });
  expectHas(common->said[0], "rank 1 called all_reduce(count=5,");
}

TEST(ControlLink, ALateRankIsNamedWithItsLastCall) {
  const auto common = runThreads(3, [](Member& m) {
    m.call(planOf(10));
    if (m.rank == 1) {
      m.awaitFirstError();
    } else {
      (void)m.stuckIn(planOf(20), 300, 1);
    }
  });
  expectOneError(*common, 3);
  expectHas(common->said[0], "all_reduce(count=20, float, sum) #2 on communicator w timed out");
  expectHas(common->said[0],
            "rank 1 did not call it; rank 1 (host h1, pid 4001) last did "
            "all_reduce(count=10, float, sum) #1");
}

TEST(ControlLink, AnAbortReachesAll) {
  const auto common = runThreads(3, [](Member& m) {
    if (m.rank == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      m.note(m.watch->abort());
    } else {
      EXPECT_EQ(m.stuckIn(planOf(20), 20000, 1).code(), Code::Aborted);
    }
  });
  expectOneError(*common, 3);
  expectHas(common->said[2], "communicator w was aborted by rank 1 (host h1, pid 4001)");
}

TEST(ControlLink, TheFirstOfManyErrorsHoldsForAll) {
  for (int i = 0; i < 20; ++i) {
    const auto common = runThreads(4, [](Member& m) {
      m.note(m.watch->declare(
          Status::error(Code::RemoteError, text("cause that rank ", m.rank, " saw"))));
    });
    expectOneError(*common, 4);
  }
}

TEST(ControlLink, ALeaverThatIsAwaitedIsNamed) {
  const auto common = runThreads(3, [](Member& m) {
    if (m.rank == 0) return m.destroy();
    (void)m.stuckIn(planOf(20), 20000, 0);
  });
  expectHas(common->said[1], "rank 0 (host h0, pid 4000) has destroyed its end");
  EXPECT_STREQ(common->said[1], common->said[2]);
}

TEST(ControlLink, RanksLeaveInAnyOrder) {
  std::vector<std::uint32_t> order{0, 1, 2};
  do {
    const auto common = runThreads(3, [&](Member& m) {
      m.call(planOf(10));
      const auto turn =
          static_cast<std::uint32_t>(std::ranges::find(order, m.rank) - order.begin());
      EXPECT_TRUE(m.awaitGo(turn));
      EXPECT_TRUE(m.watch->lookAround().ok()) << m.watch->firstError().text();
      m.destroy();
      m.common->go.store(turn + 1);
    });
  } while (std::ranges::next_permutation(order).found);
  EXPECT_TRUE(eventually(20000, [] { return linkThreads() == 0; })) << linkThreads();
}

TEST(ControlLink, RankZeroLeavesFirstAndTheOthersStillAgree) {
  const auto common = runThreads(3, [](Member& m) {
    m.call(planOf(10));
    if (m.rank == 0) {
      m.destroy();
      m.common->go.store(1);
      return;
    }
    EXPECT_TRUE(m.awaitGo(1));
    if (m.rank == 2) m.note(m.watch->abort());
    if (m.rank == 1) m.awaitFirstError();
  });
  EXPECT_STREQ(common->said[1], common->said[2]);
  expectHas(common->said[1], "aborted by rank 2");
}

TEST(ControlLink, ManyRanksAgree) {
  constexpr std::uint32_t kRanks = 64;
  std::atomic<double> abortedAt{0};
  const auto common = runThreads(kRanks, [&](Member& m) {
    m.watch->enter(planOf(20), 20000, nullptr);
    m.reached(1);
    if (m.rank == 41) {
      EXPECT_TRUE(eventually(20000, [&] {
        return std::ranges::all_of(m.common->stage, [](const auto& s) { return s.load() == 1; });
      }));
      abortedAt = nowMs();
      m.note(m.watch->abort());
    } else {
      m.awaitFirstError();
    }
    m.watch->leave();
  });
  expectOneError(*common, kRanks);
  double worst = 0;
  for (std::uint32_t r = 0; r < kRanks; ++r) worst = std::max(worst, common->at[r] - abortedAt);
  RecordProperty("latency_ms", static_cast<int>(worst));
  EXPECT_LT(worst, kPromptMs);
}

// Takes one rank in, as a control server does, and is gone before it has heard that rank's name.
void admitAndEnd(const net::Socket& listener, const net::Key& secret) {
  net::Address peer;
  bool exhausted = false;
  ASSERT_TRUE(net::waitReadable(listener, Deadline::in(20000)));
  net::Stream stream(net::acceptFrom(listener, &peer, &exhausted));
  bootstrap::Admission admission(secret);
  std::optional<bootstrap::Member> admitted;
  for (int i = 0; i < 2; ++i) {
    net::Message message{};
    ASSERT_TRUE(stream.awaitMessage(Deadline::in(20000), &message).ok());
    ASSERT_TRUE(admission.handle(message, &stream.channel(), &admitted).ok());
    ASSERT_TRUE(stream.awaitFlushed(Deadline::in(20000)).ok());
  }
}

TEST(ControlLink, AServerThatEndsWhileARankIntroducesItselfIsNamed) {
  const auto common = Common::create();
  bootstrap::IdContent content;
  net::Socket listener;
  net::Address loopback;
  loopback.ip = {127, 0, 0, 1};
  content.secret.fill(std::byte{7});
  content.addresses.resize(1);
  int error = 0;
  ASSERT_TRUE(net::listenAt(loopback, &listener, &content.addresses[0], &error).ok());
  const bootstrap::UniqueId id = bootstrap::encodeId(content);
  std::thread server([&] { admitAndEnd(listener, content.secret); });
  std::vector<std::thread> ranks;
  for (std::uint32_t r = 0; r < 2; ++r) {
    ranks.emplace_back([&, r] {
      transport::Exchange inner = exchangeOver(common, r, 2);
      const transport::Exchange exchange = [&, first = true](auto mine,
                                                             auto* all) mutable -> Status {
        WEFT_TRY(inner(mine, all));
        std::byte* const end = all->at(0).data() + all->at(0).size();
        if (std::exchange(first, false) && r == 1) std::memcpy(end - sizeof(id), &id, sizeof(id));
        return {};
      };
      Member member(common, r, 2, namesOf(2), exchange);
      member.note(member.opened);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  server.join();
  expectOneError(*common, 2);
  expectHas(common->said[0], "control link of rank 1 (host h1, pid 4001): server on host " +
                                 hostName() + ", pid " + std::to_string(::getpid()) + ": ");
}

// The exchange tells where the server listens; rank 1 comes late, foreign connections before it.
TEST(ControlLink, StrangersAtTheServerHarmNobody) {
  const auto common = Common::create();
  std::atomic<int> closed{0};
  const auto visit = [&](const bootstrap::UniqueId& id) {
    bootstrap::IdContent content;
    EXPECT_TRUE(bootstrap::decodeId(id, &content).ok());
    std::vector<net::Socket> strangers(100);
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      int error = 0;
      const net::Address& server = content.addresses[0];
      EXPECT_TRUE(net::connectTo(server, Deadline::in(5000), &strangers[i], &error).ok());
      const std::string_view words = i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : "WEFT\x01\x01";
      (void)::send(strangers[i].fd(), words.data(), words.size(), MSG_NOSIGNAL);
    }
    std::byte buffer[256];
    for (const net::Socket& s : strangers) {
      while (net::waitReadable(s, Deadline::in(5000)) &&
             ::recv(s.fd(), buffer, sizeof buffer, 0) > 0) {
      }
      ++closed;
      break;
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      transport::Exchange inner = exchangeOver(common, r, 2);
      const transport::Exchange exchange = [&, first = true](auto mine,
                                                             auto* all) mutable -> Status {
        WEFT_TRY(inner(mine, all));
        bootstrap::UniqueId id;
        if (std::exchange(first, false) && r == 1) {
          std::memcpy(&id, all->at(0).data() + all->at(0).size() - sizeof(id), sizeof(id));
          visit(id);
        }
        return {};
      };
      Member member(common, r, 2, namesOf(2), exchange);
      EXPECT_TRUE(member.opened.ok()) << member.opened.text();
      if (member.opened.ok() && r == 0) member.note(member.watch->abort());
      if (member.opened.ok() && r == 1) member.awaitFirstError();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(closed, 1);
}

TEST(ControlLink, ARankThatCannotOpenTellsAll) {
  const auto common = Common::create();
  std::vector<Status> opened(3);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      transport::Exchange inner = exchangeOver(common, r, 3);
      // Rank 2 gets an id that nobody holds.
      const transport::Exchange exchange = [&, first = true](auto mine,
                                                             auto* all) mutable -> Status {
        WEFT_TRY(inner(mine, all));
        if (std::exchange(first, false) && r == 2) {
          auto& blob = all->at(0);
          std::fill_n(blob.end() - sizeof(bootstrap::UniqueId), sizeof(bootstrap::UniqueId),
                      std::byte{0});
        }
        return {};
      };
      Member member(common, r, 3, namesOf(3), exchange, 3000);
      opened[r] = member.opened;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : opened) {
    expectHas(status.text(), "rank 2");
    expectHas(status.text(), "host h2");
    EXPECT_EQ(status.text(), opened[0].text());
  }
}

std::span<const std::byte> bytesOf(const std::uint64_t& number) {
  return std::as_bytes(std::span(&number, 1));
}

// Rounds of parts of different lengths, while ranks are early and late.
TEST(ControlLink, GathersWhatAllGive) {
  runThreads(4, [](Member& m) {
    for (std::uint32_t round = 0; round < 200; ++round) {
      if (round % 50 == m.rank) std::this_thread::sleep_for(milliseconds(5));
      const std::vector<std::byte> mine(m.rank * round, static_cast<std::byte>(m.rank + round));
      std::vector<std::vector<std::byte>> all;
      const Status status = m.link->gather(mine, &all, Deadline::in(20000));
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(all.size(), 4u);
      for (std::uint32_t r = 0; r < 4; ++r)
        ASSERT_EQ(all[r], std::vector<std::byte>(r * round, static_cast<std::byte>(r + round)));
    }
  });
}

Status gatherOne(Member& m, int ms) {
  std::vector<std::vector<std::byte>> all;
  const std::uint64_t mine = 0;
  return m.link->gather(bytesOf(mine), &all, Deadline::in(ms));
}

TEST(ControlLink, WhoGivesNothingIsNamed) {
  runThreads(4, [](Member& m) {
    EXPECT_TRUE(gatherOne(m, 20000).ok());  // so that all are here
    if (m.rank == 1 || m.rank == 2) {
      EXPECT_TRUE(m.awaitGo(1));
      return;
    }
    const Status status = gatherOne(m, 2000);
    EXPECT_EQ(status.code(), Code::Timeout);
    expectHas(status.text(), "ranks 1-2 did not make a call in time");
    m.common->go = 1;
  });
}

TEST(ControlLink, WhoHasLeftIsNotAwaited) {
  runThreads(3, [](Member& m) {
    (void)m.watch->declare(Status::error(Code::LinkLost, "a link"));
    m.awaitFirstError();
    if (m.rank == 2) return;
    const Status status = gatherOne(m, 20000);
    expectHas(status.text(), "rank 2 (host h2, pid 4002) has destroyed its end");
  });
}

// Another rank's error may come just before this rank proposes its own.
TEST(ControlLink, AnErrorThatCameFirstHolds) {
  for (const Code code : {Code::LinkLost, Code::RemoteError}) {
    runThreads(2, [&](Member& m) {
      (void)m.watch->declare(Status::error(code, "the first"));
      m.awaitFirstError();
      m.link->propose(Status::error(code, "the second"));
      EXPECT_TRUE(m.link->overruled().ok()) << m.link->overruled().text();
      EXPECT_EQ(m.watch->firstError().text(), "the first");
    });
  }
}

TEST(ControlLink, AnAbortOverrulesALostLinkAndEndsTheGathering) {
  const auto common = runThreads(3, [](Member& m) {
    (void)m.watch->declare(Status::error(Code::LinkLost, "a link"));
    m.awaitFirstError();
    if (m.rank == 2) {
      std::this_thread::sleep_for(milliseconds(50));
      EXPECT_EQ(m.watch->abort().code(), Code::Aborted);
      EXPECT_TRUE(m.awaitGo(1));
    } else {
      EXPECT_EQ(gatherOne(m, 20000).code(), Code::Aborted);
      m.common->go = 1;
    }
    m.note(m.watch->firstError());
  });
  expectOneError(*common, 3);
  expectHas(common->said[0], "communicator w was aborted by rank 2 (host h2, pid 4002)");
}

TEST(ControlLink, NothingIsLeftOfManyLinks) {
  const auto fds = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator("/proc/self/fd"))
      ++count;
    return count;
  };
  runThreads(2, [](Member&) {});
  EXPECT_TRUE(eventually(20000, [] { return linkThreads() == 0; }));
  const std::size_t before = fds();
  for (int i = 0; i < 1000 / kSlowdown / 10; ++i) runThreads(2, [](Member&) {});
  EXPECT_TRUE(eventually(20000, [&] { return linkThreads() == 0 && fds() <= before; }))
      << fds() << " descriptors, before " << before;
}

}  // namespace
}  // namespace weft::control
