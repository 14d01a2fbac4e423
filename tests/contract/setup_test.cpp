// SPDX-License-Identifier: Apache-2.0
// Set-ups that cannot succeed: all ranks say why, in the same words, and soon.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/fd.h"
#include "courier.h"

namespace weft::transport {
namespace {

using Clock = std::chrono::steady_clock;
const Fabric kLocal{"local", false, false, "", 0};
const Fabric kShm{"shm_processes", true, true, "", 0};
const Fabric kLocalForked{"local_forked", false, true, "", 0};

bool has(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

// Makes the transport and gives back the error that it must end in.
Status mustFail(Rank& rank, const TransportSetup& setup) {
  std::unique_ptr<Transport> transport;
  const Clock::time_point begin = Clock::now();
  const Status status = rank.tryMake(setup, &transport);
  REQUIRE(!status.ok(), "rank ", rank.rank);
  REQUIRE(transport == nullptr);
  REQUIRE(Clock::now() - begin < std::chrono::seconds(5), status.text());
  return status;
}

// All ranks have the same text, with `parts` in it.
void requireSame(Rank& rank, const Status& status, Code code,
                 std::initializer_list<std::string_view> parts) {
  struct Words {
    char letters[1500] = {};
  } mine;
  status.text().copy(mine.letters, sizeof(mine.letters) - 1);
  for (const Words& other : rank.share(mine))
    REQUIRE(status.text() == other.letters, "differs: ", other.letters);
  REQUIRE(status.code() == code, static_cast<int>(status.code()), " ", status.text());
  for (const std::string_view part : parts) REQUIRE(has(status, part), status.text());
}

std::vector<Fabric> mappedAndWire() {
  std::vector<Fabric> fabrics = bareFabrics();
  fabrics.push_back(wireFabrics()[0]);
  return fabrics;
}

class Setup : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Setup, testing::ValuesIn(mappedAndWire()),
                         [](const auto& of) { return of.param.name; });

TEST_P(Setup, LayoutsDiffer) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    WindowLayout layout = smallLayout(3);
    if (rank.rank == 2) layout.arenaBytes *= 2;
    requireSame(rank, mustFail(rank, rank.setup(layout)), Code::Mismatch,
                {"windows differ", "rank 2", "65536", "131072", "fix:"});
  });
}

TEST_P(Setup, RanksDiffer) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    TransportSetup setup = rank.setup(smallLayout(3));
    if (rank.rank == 2) setup.rank = 1;
    requireSame(rank, mustFail(rank, setup), Code::Mismatch, {"rank 1", "place of rank 2"});
  });
}

TEST_P(Setup, PeerSpeaksAnotherVersion) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    TransportSetup setup = rank.setup(smallLayout(2));
    setup.exchange = [&](auto mine, auto* all) {
      const bool old = rank.rank == 1 && all != nullptr;
      return rank.exchange(old ? mine.first(mine.size() - 8) : mine, all);
    };
    requireSame(rank, mustFail(rank, setup), Code::Mismatch, {"rank 1", "same libweft"});
  });
}

TEST_P(Setup, NotEnoughMemory) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    WindowLayout layout = smallLayout(2);
    layout.arenaBytes = std::size_t{1} << 45;
    requireSame(rank, mustFail(rank, rank.setup(layout)), Code::OutOfMemory,
                {"rank 0", "bytes", "fix:"});
  });
}

TEST_P(Setup, RankThatNeverComes) {
  const auto outcomes = runRanks(GetParam(), 3, [](Rank& rank) {
    if (rank.rank == 1) return;
    REQUIRE(mustFail(rank, rank.setup(smallLayout(3))).code() == Code::Timeout);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.failure, "");
}

TEST(SetupShm, RankThatHangsBeforeItConnects) {
  runAllWell(kShm, 3, [](Rank& rank) {
    TransportSetup setup = rank.setup(smallLayout(3));
    int calls = 0;
    if (rank.rank == 1) {
      setup.exchange = [&](auto mine, auto* all) {
        const Status status = rank.exchange(mine, all);
        if (++calls == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        return status;
      };
    } else {
      setup.timeoutMs = 400;
    }
    requireSame(rank, mustFail(rank, setup), Code::Timeout,
                {"rank 0", "in time from rank 1", "fix:"});
  });
}

TEST(SetupShm, RankThatDiesBeforeItConnects) {
  for (const std::uint32_t victim : {0u, 1u, 2u}) {
    const auto outcomes = runRanks(kShm, 3, [&](Rank& rank) {
      TransportSetup setup = rank.setup(smallLayout(3));
      setup.exchange = [&, calls = 0](auto mine, auto* all) mutable {
        if (++calls == 2) return Status::error(Code::Timeout, "not what is tested");
        const Status status = rank.exchange(mine, all);
        if (rank.rank == victim) ::raise(SIGKILL);
        return status;
      };
      std::unique_ptr<Transport> transport;
      const Clock::time_point begin = Clock::now();
      const Status status = rank.tryMake(setup, &transport);
      REQUIRE(has(status, "during set-up"), status.text());
      REQUIRE(status.code() == Code::RemoteError, status.text());
      REQUIRE(Clock::now() - begin < std::chrono::seconds(2), status.text());
    });
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(outcomes[rank].failure, "") << "victim " << victim;
      EXPECT_EQ(outcomes[rank].signal, rank == victim ? SIGKILL : 0);
    }
  }
}

TEST(SetupShm, DescriptorLimitIsRaisedOrNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer opens pipes of its own to check addresses";
#endif
  runAllWell(kShm, 8, [](Rank& rank) {
    const Fd highest(::fcntl(0, F_DUPFD, 100));
    const rlimit soft{static_cast<rlim_t>(highest.get()) + 1, 1000};
    std::vector<Fd> fillers;  // no more than 10 left
    while (highest && fillers.size() < 90) fillers.emplace_back(::dup(0));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &soft) == 0);
    rank.make(smallLayout(8));
    rank.barrier();
    if (rank.rank == 1) {
      const rlimit hard{soft.rlim_cur, soft.rlim_cur};
      REQUIRE(::setrlimit(RLIMIT_NOFILE, &hard) == 0);
    }
    requireSame(rank, mustFail(rank, rank.setup(smallLayout(8))), Code::SystemError,
                {"rank 1", "open files", text("hard limit ", soft.rlim_cur), "fix: ulimit"});
  });
}

TEST(SetupShm, FileSizeLimitIsAnErrorAndNoSignal) {
  runAllWell(kShm, 2, [](Rank& rank) {
    const rlimit small{65536, RLIM_INFINITY};
    if (rank.rank == 0) REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    requireSame(rank, mustFail(rank, rank.setup(smallLayout(2))), Code::OutOfMemory,
                {"rank 0", "file size limit is 65536", "fix: ulimit -f"});
  });
}

// The first rank makes the memory of all.
TEST(SetupShm, FileSizeLimitOfOtherRanksDoesNotMatter) {
  runAllWell(kShm, 3, [](Rank& rank) {
    const rlimit small{65536, RLIM_INFINITY};
    if (rank.rank != 0) REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const auto transport = rank.make(smallLayout(3));
    const WindowLayout& layout = transport->layout();
    REQUIRE(transport->commit(rank.rank, layout.arena(), layout.arenaBytes).ok());
    rank.barrier();
  });
}

TEST(SetupShm, OtherNetworkNamespaceIsNamed) {
  runAllWell(kShm, 2, [](Rank& rank) {
    const int result = rank.rank == 1 ? ::unshare(CLONE_NEWNET) : 0;
    for (const int other : rank.share(result))
      if (other != 0) return;  // not permitted here
    requireSame(rank, mustFail(rank, rank.setup(smallLayout(2))), Code::InvalidUsage,
                {"rank 1", "network namespaces", "fix:"});
  });
}

TEST(SetupShm, OtherUserIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  runAllWell(kShm, 2, [](Rank& rank) {
    if (rank.rank == 1) REQUIRE(::setresuid(65534, 65534, 65534) == 0);
    requireSame(rank, mustFail(rank, rank.setup(smallLayout(2))), Code::InvalidUsage,
                {"rank 1", "uid 0 and 65534", "fix:"});
  });
}

// Whoever connects without the secret learns nothing and disturbs nobody.
TEST(SetupShm, StrangersAreIgnored) {
  runAllWell(kShm, 3, [](Rank& rank) {
    TransportSetup setup = rank.setup(smallLayout(3));
    int calls = 0;
    std::vector<Fd> strangers;
    setup.exchange = [&](auto mine, auto* all) {
      const Status status = rank.exchange(mine, all);
      if (++calls != 1 || rank.rank != 2) return status;
      // All listen by now; their names are for everybody to read.
      std::FILE* const names = std::fopen("/proc/net/unix", "r");
      char line[512];
      while (names != nullptr && std::fgets(line, sizeof(line), names) != nullptr) {
        char* const name = std::strstr(line, "@weft-");
        if (name == nullptr) continue;
        sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
        const std::size_t length = std::strcspn(name, "\n");
        std::memcpy(to.sun_path + 1, name + 1, length - 1);
        Fd& socket = strangers.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), size) == 0)
          ::send(socket.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
      }
      if (names != nullptr) std::fclose(names);
      REQUIRE(strangers.size() >= 3, "found no set-up socket to disturb");
      return status;
    };
    std::unique_ptr<Transport> transport;
    const Status made = rank.tryMake(setup, &transport);
    REQUIRE(made.ok(), made.text());
    rank.barrier();
  });
}

TEST(SetupLocal, OtherProcessIsNamed) {
  runAllWell(kLocalForked, 2, [](Rank& rank) {
    requireSame(rank, mustFail(rank, rank.setup(smallLayout(2))), Code::InvalidUsage,
                {"rank 0", "is not a thread of", "fix:"});
  });
}

TEST(SetupLocal, OneRankIsAWorld) {
  for (const Fabric& fabric : bareFabrics())
    runAllWell(fabric, 1, [](Rank& rank) {
      const auto transport = rank.make(smallLayout(1));
      REQUIRE(transport->put({.peer = 0, .arrival = transport->layout().arrivals(), .flag = 3}) ==
              PutResult::Done);
      REQUIRE(transport->own().arrivals()[0].flag.load() == 3);
    });
}

}  // namespace
}  // namespace weft::transport
