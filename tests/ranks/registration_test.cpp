// SPDX-License-Identifier: Apache-2.0
// weftCommRegister: malloc'ed memory that collectives use in place, and that is the application's again afterwards.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

// malloc'ed ints at any place, with neighbours on both sides that nobody may change; registered.
class Registered {
 public:
  static constexpr std::size_t kBeside = 1500;

  Registered(Steps& steps, weftComm_t comm, std::size_t count, std::size_t shift)
      : steps_(steps), comm_(comm), count_(count), all_(count + 2 * kBeside + shift, kNeighbour) {
    data_ = all_.data() + kBeside + shift;
    steps.ok(weftCommRegister(comm, data_, count * sizeof(int), &handle_), "register");
  }
  ~Registered() {
    const std::vector<int> before(data_, data_ + count_);
    steps_.ok(weftCommDeregister(comm_, handle_), "deregister");
    steps_.expect(std::equal(before.begin(), before.end(), data_), "lost when moved back");
    steps_.expect(std::all_of(all_.data(), data_, isNeighbour) &&
                      std::all_of(data_ + count_, all_.data() + all_.size(), isNeighbour),
                  "a neighbour was changed");
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  int* data() const { return data_; }
  void fill(int value) { std::fill_n(data_, count_, value); }
  bool all(int value, std::size_t from, std::size_t count) const {
    return std::all_of(data_ + from, data_ + from + count, [&](int x) { return x == value; });
  }

 private:
  static constexpr int kNeighbour = 0x5eed;
  static bool isNeighbour(int x) { return x == kNeighbour; }

  Steps& steps_;
  weftComm_t comm_;
  std::size_t count_;
  std::vector<int> all_;
  int* data_ = nullptr;
  void* handle_ = nullptr;
};

class Registration : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Registration, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& of) { return nameOf(of.param); });

// Of `count` ints within the buffers, from `at` on.
void addWithin(Steps& steps, const Rank& r, Registered& in, Registered& out, std::size_t at,
               std::size_t count) {
  const int sum = r.ranks * (r.ranks + 1) / 2;
  in.fill(r.rank + 1);
  out.fill(-1);
  steps.ok(weftAllReduce(in.data() + at, out.data() + at, count, weftInt, weftSum, r.comm, nullptr,
                         nullptr),
           "sum");
  steps.expect(out.all(sum, at, count) && out.all(-1, 0, at), "a wrong sum");
  steps.ok(weftAllReduce(in.data() + at, in.data() + at, count, weftInt, weftSum, r.comm, nullptr,
                         nullptr),
           "in place");
  steps.expect(in.all(sum, at, count) && in.all(r.rank + 1, 0, at), "a wrong sum in place");
}

void moveWithin(Steps& steps, const Rank& r, Registered& all, std::size_t block) {
  const std::size_t own = block * static_cast<std::size_t>(r.rank);
  all.fill(-1);
  std::fill_n(all.data() + own, block, r.rank);
  steps.ok(weftAllGather(all.data() + own, all.data(), block, weftInt, r.comm, nullptr, nullptr),
           "gather in place");
  for (int rank = 0; rank < r.ranks; ++rank)
    steps.expect(all.all(rank, block * static_cast<std::size_t>(rank), block), "gathered");
  steps.ok(weftBroadcast(all.data() + own, all.data() + own, block, weftInt, r.ranks - 1, r.comm,
                         nullptr, nullptr),
           "broadcast");
  steps.expect(all.all(r.ranks - 1, own, block), "a wrong broadcast");
  const int next = (r.rank + 1) % r.ranks, previous = (r.rank + r.ranks - 1) % r.ranks;
  std::vector<int> got(block);
  all.fill(r.rank);
  steps.ok(weftGroupStart(), "group");
  steps.ok(weftSend(all.data(), block, weftInt, next, r.comm, nullptr, nullptr), "send");
  steps.ok(weftRecv(all.data() + block, block, weftInt, previous, r.comm, nullptr, nullptr),
           "receive");
  steps.ok(weftGroupEnd(), "messages");
  steps.expect(all.all(r.rank, 0, block) && all.all(previous, block, block), "a wrong message");
}

TEST_P(Registration, WorksForAnyRangeAndGivesItBack) {
  const std::string failed = failures({GetParam(), 3}, [](const Rank& r) {
    Steps steps;
    std::mt19937 random(11);  // the same on all ranks, but for where a buffer begins
    std::mt19937 own(static_cast<unsigned>(r.rank));
    for (int round = 0; round < 5; ++round) {
      const std::size_t block = round == 0 ? 250000 : 1000 + random() % 60000;
      const std::size_t count = 3 * block, at = random() % block;
      Registered in(steps, r.comm, count, own() % 1024), out(steps, r.comm, count, own() % 1024);
      for (int again = 0; again < 3; ++again) addWithin(steps, r, in, out, at, count - at);
      moveWithin(steps, r, in, block);
      steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    }
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Of the same memory, on two communicators; the last one gives it back.
TEST_P(Registration, CountsItsUsers) {
  const std::string failed = failures({GetParam(), 2}, [](const Rank& r) {
    Steps steps;
    Twin twin(steps, r);
    constexpr std::size_t kCount = 100000;
    Registered buffer(steps, r.comm, kCount, 100);
    void* second = nullptr;
    steps.ok(weftCommRegister(twin, buffer.data(), kCount * sizeof(int), &second), "again");
    steps.gives(weftInvalidArgument, weftCommDeregister(r.comm, second), "of another communicator");
    buffer.fill(1);
    steps.ok(weftAllReduce(buffer.data(), buffer.data(), kCount, weftInt, weftSum, twin, nullptr,
                           nullptr),
             "sum");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    steps.ok(weftCommDeregister(twin, second), "deregister the second");
    steps.ok(weftAllReduce(buffer.data(), buffer.data(), kCount, weftInt, weftSum, r.comm, nullptr,
                           nullptr),
             "sum");
    steps.expect(buffer.all(4, 0, kCount), "a wrong sum");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// Of memory that is not there any more the communicator's end warns, and leaves alone what is there.
TEST(RegistrationBetweenProcesses, MayBeForgotten) {
  const std::string failed = failures({Kind::Processes, 2}, [](const Rank& r) {
    Steps steps;
    constexpr std::size_t kBytes = 1 << 16;
    const auto map = [](void* at) {
      return ::mmap(at, kBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
    };
    auto* const memory = static_cast<char*>(map(nullptr));
    {
      Twin twin(steps, r);
      void* handle = nullptr;
      steps.ok(weftCommRegister(twin, memory, kBytes, &handle), "register");
      steps.expect(map(memory) == memory, "map anew");
      memory[5] = 77;
    }
    steps.expect(memory[5] == 77, "what is there was changed");
    ::munmap(memory, kBytes);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// What cannot be moved is as usable as ever; what is not there is an error.
TEST_P(Registration, LeavesWhatItCannotMove) {
  const std::string failed = failures({GetParam(), 2}, [](const Rank& r) {
    Steps steps;
    constexpr std::size_t kBytes = 1 << 16;
    void* const shared =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void* own = nullptr;
    steps.ok(weftMemAlloc(&own, kBytes), "allocate");
    int little[4] = {};
    for (void* const memory : {shared, own, static_cast<void*>(little)}) {
      void* handle = nullptr;
      const std::size_t bytes = memory == little ? sizeof(little) : kBytes;
      steps.ok(weftCommRegister(r.comm, memory, bytes, &handle), "register");
      auto* const data = static_cast<int*>(memory);
      std::fill_n(data, bytes / sizeof(int), 1);
      steps.ok(weftAllReduce(data, data, bytes / sizeof(int), weftInt, weftSum, r.comm, nullptr,
                             nullptr),
               "sum");
      steps.expect(data[0] == 2 && data[bytes / sizeof(int) - 1] == 2, "a wrong sum");
      steps.ok(weftCommDeregister(r.comm, handle), "deregister");
      steps.gives(weftInvalidArgument, weftCommDeregister(r.comm, handle), "twice");
    }
    steps.ok(weftMemFree(own), "free");
    ::munmap(shared, kBytes);
    void* handle = nullptr;
    steps.gives(weftInvalidArgument, weftCommRegister(r.comm, shared, ~std::size_t{0}, &handle),
                "beyond the end of all addresses");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

TEST(RegistrationBetweenProcesses, NeedsMemoryThatIsThere) {
  const std::string failed = failures({Kind::Processes, 2}, [](const Rank& r) {
    Steps steps;
    void* handle = nullptr;
    steps.gives(weftInvalidArgument,
                weftCommRegister(r.comm, reinterpret_cast<void*>(4096), 8192, &handle),
                "no memory");
    const std::string said = weftGetLastError(r.comm);
    steps.expect(said.find("no memory is mapped at 0x1000") != std::string::npos, said);
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// A child's stores are its own, and it may free the memory.
TEST(RegistrationBetweenProcesses, AChildHasItsOwn) {
  const std::string failed = failures({Kind::Processes, 2}, [](const Rank& r) {
    Steps steps;
    constexpr std::size_t kCount = 300000;
    Registered buffer(steps, r.comm, kCount, 7);
    buffer.fill(r.rank + 1);
    const pid_t child = forkAtRest();
    if (child == 0) {
      const bool seen = buffer.all(r.rank + 1, 0, kCount);
      buffer.fill(99);
      ::_exit(seen && buffer.all(99, 0, kCount) ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    steps.expect(status == 0, "the child");
    steps.expect(buffer.all(r.rank + 1, 0, kCount), "a child's stores");
    steps.ok(weftAllReduce(buffer.data(), buffer.data(), kCount, weftInt, weftSum, r.comm, nullptr,
                           nullptr),
             "sum");
    steps.expect(buffer.all(3, 0, kCount), "a wrong sum");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

// A registration ends with its communicator, whoever gets its address afterwards.
TEST(Registrations, EndWithTheirCommunicator) {
  int buffer[4] = {};
  void* handle = nullptr;
  for (int round = 0; round < 3; ++round) {
    weftComm_t comm = nullptr;
    ASSERT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess);
    if (round > 0) {
      EXPECT_EQ(weftCommDeregister(comm, handle), weftInvalidArgument);
    }
    ASSERT_EQ(weftCommRegister(comm, buffer, sizeof(buffer), &handle), weftSuccess);
    ASSERT_EQ(weftCommDestroy(comm), weftSuccess);
  }
}

TEST(RegistrationBetweenProcesses, EndsWithTheCommunicatorAndKeepsTheContents) {
  const std::string failed = failures({Kind::Processes, 2}, [](const Rank& r) {
    Steps steps;
    std::vector<int> buffer(100000);
    {
      Twin twin(steps, r);
      void* handle = nullptr;
      steps.ok(weftCommRegister(twin, buffer.data(), buffer.size() * 4, &handle), "register");
      std::fill(buffer.begin(), buffer.end(), 1);
      steps.ok(weftAllReduce(buffer.data(), buffer.data(), buffer.size(), weftInt, weftSum, twin,
                             nullptr, nullptr),
               "sum");
      steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    }
    steps.expect(std::count(buffer.begin(), buffer.end(), 2) == 100000, "lost");
    return steps.failed();
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace weft::testing
