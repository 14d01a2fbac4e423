// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: how fast they meet, and what the others hear when one dies.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <sstream>

#include "bootstrap/joiner.h"
#include "child.h"
#include "helpers.h"

namespace weft::bootstrap {
namespace {

using namespace weft::test;

std::string joinInChild(const UniqueId& id, int rank, int size) {
  const Joined joined = join(id, {.rank = rank, .size = size});
  return joined.status.ok() ? "ok" : joined.status.text();
}

std::int64_t nowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             Deadline::Clock::now().time_since_epoch())
      .count();
}

// A process that makes an id, hands it over, and stays: the sanitizers want no fork amid the work
// of another thread, such as the listener.
std::unique_ptr<Child> rootProcess(UniqueId* id, const int* childsLife = nullptr,
                                   rlim_t openFiles = 0) {
  awaitSingleThread();
  int fds[2];
  if (pipe(fds) != 0) std::abort();
  auto root = std::make_unique<Child>([&] {
    const rlimit files{openFiles, openFiles};
    if (openFiles != 0) setrlimit(RLIMIT_NOFILE, &files);
    const UniqueId mine = newId();
    // What a trainer does: a worker that was forked after the sockets were opened and outlives it, until the test closes
    // this pipe.
    if (char end; childsLife != nullptr && fork() == 0) {
      ::close(childsLife[1]);
      (void)!read(childsLife[0], &end, 1);
      endAtOnce();
    }
    if (write(fds[1], mine.bytes.data(), mine.bytes.size()) < 0) _exit(1);
    sleep(60);
    return std::string();
  });
  ::close(fds[1]);
  EXPECT_EQ(read(fds[0], id->bytes.data(), id->bytes.size()),
            static_cast<ssize_t>(id->bytes.size()));
  ::close(fds[0]);
  return root;
}

// Microseconds from the start of the last of `size` processes until all have joined.
std::int64_t rendezvousTimeUs(int size) {
  UniqueId id;
  const std::unique_ptr<Child> root = rootProcess(&id);
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < size; ++rank) {
    children.push_back(std::make_unique<Child>([&, rank] {
      const std::int64_t start = nowUs();
      const std::string result = joinInChild(id, rank, size);
      return result == "ok" ? std::to_string(start) + ' ' + std::to_string(nowUs()) : result;
    }));
  }
  std::int64_t lastStart = 0, lastEnd = 0;
  for (const auto& child : children) {
    const std::string result = child->result();
    std::istringstream stream(result);
    std::int64_t start = 0, end = 0;
    EXPECT_TRUE(stream >> start >> end) << result;
    lastStart = std::max(lastStart, start);
    lastEnd = std::max(lastEnd, end);
  }
  return lastEnd - lastStart;
}

// Within a tenth of a second is promised of a quiet machine: the figure is printed, and only a much larger one fails.
TEST(Processes, EightMeetSoon) {
  awaitSingleThread();
  std::vector<std::int64_t> times;
  for (int round = 0; round < 3; ++round) times.push_back(rendezvousTimeUs(8));
  std::sort(times.begin(), times.end());
  std::printf(
      "8 processes joined %.1f ms after the last one's start (median of %zu, worst %.1f ms)\n",
      static_cast<double>(times[times.size() / 2]) / 1e3, times.size(),
      static_cast<double>(times.back()) / 1e3);
  EXPECT_LT(std::chrono::microseconds(times.front()), kSoon);
}

// Until these have come to the root, and all wait for others.
void awaitWaiting(const UniqueId& id, const Child& root,
                  std::initializer_list<const Child*> ranks) {
  std::vector<pid_t> pids{root.pid()};
  for (const Child* rank : ranks) pids.push_back(rank->pid());
  ASSERT_TRUE(eventually(kDeadlineMs / 2, [&] {
    return connectionsAt(id) == static_cast<int>(ranks.size()) && areStill(pids);
  }));
}

TEST(Processes, AKilledRankIsNamedToTheOthers) {
  awaitSingleThread();
  UniqueId id;
  const std::unique_ptr<Child> root = rootProcess(&id);
  Child first([&] { return joinInChild(id, 0, 4); });
  Child second([&] { return joinInChild(id, 1, 4); });
  Child victim([&] { return joinInChild(id, 2, 4); });
  awaitWaiting(id, *root, {&first, &second, &victim});
  const auto killed = Deadline::Clock::now();
  victim.kill();
  const std::string text = first.result();
  EXPECT_LT(Deadline::Clock::now() - killed, kSoon);
  EXPECT_EQ(text, second.result());
  expectHas(text, "rank 2 (host ");
  expectHas(text, ", pid " + std::to_string(victim.pid()) + ") died");
}

void expectRootsDeathIsSeen(bool withChild) {
  UniqueId id;
  int life[2];
  ASSERT_EQ(::pipe(life), 0);
  const std::unique_ptr<Child> root = rootProcess(&id, withChild ? life : nullptr);
  Child rank([&] { return joinInChild(id, 1, 3); });
  awaitWaiting(id, *root, {&rank});
  const auto killed = Deadline::Clock::now();
  root->kill();
  const std::string text = rank.result();
  EXPECT_LT(Deadline::Clock::now() - killed, kSoon);
  expectHas(text, "bootstrap root (host ");
  expectHas(text, ", pid " + std::to_string(root->pid()) + ") died");
  ::close(life[0]);
  ::close(life[1]);
}

TEST(Processes, TheDeathOfTheRootsProcessIsSeenSoon) { expectRootsDeathIsSeen(false); }

TEST(Processes, AlsoIfAForkedChildLivesOn) { expectRootsDeathIsSeen(true); }

TEST(Processes, AnIdWhoseProcessEndedBeforeTheJoinIsStale) {
  UniqueId id;
  const std::unique_ptr<Child> root = rootProcess(&id);
  root->kill();
  root->result();
  const auto start = Deadline::Clock::now();
  expectHas(join(id, {.rank = 1, .size = 3}).status.text(), "stale unique id");
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
}

TEST(Processes, TooFewFileDescriptorsAreSaidWithTheNumbers) {
  awaitSingleThread();
  Child root([] {
    const rlimit low{200, 200};
    setrlimit(RLIMIT_NOFILE, &low);
    return joinInChild(newId(), 0, 1000);
  });
  const std::string text = root.result();
  expectHas(text, " for the bootstrap), hard limit 200; fix: ");
  expectHas(text, "need 1");
}

// The ranks that meet there all hear of it, and whose limit it is.
TEST(Processes, ARootWithTooFewFileDescriptorsTellsAll) {
  UniqueId id;
  const std::unique_ptr<Child> root = rootProcess(&id, nullptr, 200);
  Child first([&] { return joinInChild(id, 1, 1000); });
  Child second([&] { return joinInChild(id, 2, 1000); });
  const std::string text = first.result();
  EXPECT_EQ(text, second.result());
  expectHas(text, "bootstrap root (host ");
  expectHas(text, ", pid " + std::to_string(root->pid()) + "): need 1");
  expectHas(text, " for the bootstrap), hard limit 200; fix: ulimit -Hn ");
}

// Asking again would not help: it says so at once, whoever took the last one.
TEST(Processes, ARankWithoutADescriptorToConnectWithSaysSoAtOnce) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer opens pipes of its own to check addresses";
#endif
  awaitSingleThread();
  Child poor([] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    IdContent id;
    id.addresses.push_back(loopbackV4());
    Joiner joiner(id, Hello{{}, {}, 1, 2, {}, {}}, Deadline::in(60000));
    std::unique_ptr<net::Stream> stream;
    std::string rootName;
    return joiner.run(1000, &stream, &rootName).text();
  });
  const auto start = Deadline::Clock::now();
  const std::string text = poor.result();
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
  expectHas(text, "rank 1: no socket for 127.0.0.1:");
  expectHas(text, "fix: raise the limit of open files");
}

TEST(Processes, ANameIsNotAskedForWithoutADescriptor) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer opens pipes of its own to check addresses";
#endif
  awaitSingleThread();
  Child poor([] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    UniqueId id;
    return uniqueIdFromAddress("no.such.host.invalid:4711", "", Deadline::in(60000), &id).text();
  });
  const auto start = Deadline::Clock::now();
  expectHas(poor.result(), "open files");
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
}

TEST(Processes, TheSoftLimitIsRaisedWhereTheHardOneAllowsIt) {
  awaitSingleThread();
  Child root([] {
    const rlimit low{80, 400};
    setrlimit(RLIMIT_NOFILE, &low);
    const UniqueId id = newId();
    std::vector<Part> parts = healthyParts(100);
    for (const Joined& joined : joinAll(id, parts)) {
      if (!joined.status.ok()) return joined.status.text();
    }
    return std::string("ok");
  });
  EXPECT_EQ(root.result(), "ok");
}

}  // namespace
}  // namespace weft::bootstrap
