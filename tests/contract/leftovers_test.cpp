// SPDX-License-Identifier: Apache-2.0
// What is made goes away again, and who dies is noticed.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

#include "courier.h"
#include "transports/shm/heap.h"
#include "transports/shm/shm.h"

namespace weft::transport {
namespace {

using Clock = std::chrono::steady_clock;

const Fabric kForked{"shm_processes", true, true, "", 0};

class Leftovers : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Leftovers, testing::ValuesIn(bareFabrics()),
                         [](const auto& of) { return of.param.name; });

std::size_t entries(const char* directory) {
  DIR* const open = ::opendir(directory);
  std::size_t count = 0;
  while (open != nullptr && ::readdir(open) != nullptr) ++count;
  if (open != nullptr) ::closedir(open);
  return count;
}

// Of the process; where ranks are threads of one, rank 0 looks while the others wait.
std::size_t sockets(Rank& rank) {
  std::size_t count = 0;
  rank.barrier();
  if (!rank.fabric.processes && rank.rank != 0) {
    rank.barrier();
    return count;
  }
  for (int fd = 0; fd < 1000; ++fd) {
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode)) ++count;
  }
  rank.barrier();
  return count;
}

struct Footprint {
  std::size_t descriptors = 0;
  std::size_t tasks = 0;
  std::size_t sharedMaps = 0;  // of memfds, but for the process's heap
  std::size_t mappedKb = 0;

  // Of the process; where ranks are threads of one, rank 0 looks while the others wait.
  static Footprint now(Rank& rank) {
    Footprint print;
    if (rank.fabric.processes || rank.rank == 0) print = ofProcess();
    rank.barrier();
    return print;
  }

 private:
  static bool isOwnHeap(const std::string& line) {
    const auto* const start = reinterpret_cast<void*>(std::stoull(line, nullptr, 16));
    const shm::Heap* const heap = shm::Heap::existing();
    return shm::Heap::isParents(start) || (heap != nullptr && heap->contains(start));
  }
  static Footprint ofProcess() {
    Footprint print{entries("/proc/self/fd"), entries("/proc/self/task"), 0, 0};
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find("memfd:weft") != std::string::npos && !isOwnHeap(line)) ++print.sharedMaps;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == "VmSize:") status >> print.mappedKb;
    return print;
  }
};

TEST_P(Leftovers, NoneAfterManyLives) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const WindowLayout layout = smallLayout(3);
    const auto live = [&](int times) {
      for (int i = 0; i < times; ++i) {
        const auto transport = rank.make(layout);
        transport->put({.peer = (rank.rank + 1) % 3, .arrival = layout.arrivals(), .flag = 1});
      }
      rank.barrier();  // all have ended theirs
    };
    live(5);
    const Footprint before = Footprint::now(rank);
    live(200);
    const Footprint after = Footprint::now(rank);
    REQUIRE(after.descriptors == before.descriptors, before.descriptors, " ", after.descriptors);
    REQUIRE(after.tasks == before.tasks);
    REQUIRE(after.sharedMaps == 0 && before.sharedMaps == 0, after.sharedMaps);
    REQUIRE(after.mappedKb < before.mappedKb + 32768, before.mappedKb, " ", after.mappedKb, " KiB");
  });
}

TEST_P(Leftovers, NoneAfterFailedSetups) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto fail = [&](int times) {
      for (int i = 0; i < times; ++i) {
        WindowLayout layout = smallLayout(3);
        if (rank.rank == 1) layout.arenaBytes *= 2;
        std::unique_ptr<Transport> transport;
        REQUIRE(!rank.tryMake(rank.setup(layout), &transport).ok());
      }
      rank.barrier();
    };
    fail(5);
    const Footprint before = Footprint::now(rank);
    fail(100);
    const Footprint after = Footprint::now(rank);
    REQUIRE(after.descriptors == before.descriptors);
    REQUIRE(after.sharedMaps == 0, after.sharedMaps);
    REQUIRE(after.mappedKb < before.mappedKb + 32768, before.mappedKb, " ", after.mappedKb, " KiB");
  });
}

// One mapping of all windows, and what is said to be kept of each peer; its heap is mapped when it
// is reached.
TEST(ShmFootprint, IsSmall) {
  runAllWell(kForked, 5, [](Rank& rank) {
    rank.make(smallLayout(5));
    rank.barrier();
    const Footprint before = Footprint::now(rank);
    const auto transport = rank.make(smallLayout(5));
    const Footprint made = Footprint::now(rank);
    REQUIRE(made.sharedMaps == 1, made.sharedMaps);
    REQUIRE(made.descriptors <= before.descriptors + shm::keptDescriptors(5), before.descriptors,
            " ", made.descriptors);
    const auto further = rank.make(smallLayout(5));
    REQUIRE(Footprint::now(rank).descriptors == made.descriptors + shm::furtherDescriptors(5));
    REQUIRE(transport->reach((rank.rank + 1) % 5, 1) != nullptr);
    REQUIRE(Footprint::now(rank).sharedMaps == 3);
    rank.barrier();
  });
}

// Neither a file nor, once set up, a socket.
TEST_P(Leftovers, NothingHasAName) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const std::size_t before = sockets(rank);
    const auto transport = rank.make(smallLayout(2));
    REQUIRE(sockets(rank) == before);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      REQUIRE(line.find("/dev/shm/weft") == std::string::npos, line);
    rank.barrier();
  });
}

// kill -9 makes deathFd readable within 100 ms. On a busy machine a trial may fail; not all may.
TEST(Death, IsNoticedSoon) {
  std::string failure = "-";
  for (int trial = 0; trial < 5 && !failure.empty(); ++trial) {
    const auto outcomes = runRanks(kForked, 2, [](Rank& rank) {
      const auto transport = rank.make(smallLayout(2));
      const auto pids = rank.share(::getpid());
      if (rank.rank == 1)
        for (;;) ::pause();
      pollfd death{transport->deathFd(1), POLLIN, 0};
      REQUIRE(::poll(&death, 1, 0) == 0, "nobody is dead yet");
      const Clock::time_point killed = Clock::now();
      ::kill(pids[1], SIGKILL);
      REQUIRE(::poll(&death, 1, 10000) == 1);
      const auto took = std::chrono::ceil<std::chrono::microseconds>(Clock::now() - killed);
      REQUIRE(took < std::chrono::milliseconds(100), took.count(), " us");
    });
    EXPECT_EQ(outcomes[1].signal, SIGKILL);
    failure = outcomes[0].failure;
  }
  EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace weft::transport
