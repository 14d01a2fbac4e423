// SPDX-License-Identifier: Apache-2.0
// The threads of a rank: every piece of every job is run once, whoever comes, and helpers sleep
// while no call has the team.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "engine/caller_team.h"
#include "engine/team_compute.h"
#include "engine/thread_team.h"
#include "tests/unit/slow_build.h"
#include "tests/unit/still_transport.h"

namespace weft::engine {
namespace {

std::shared_ptr<Team> teamOf(std::uint32_t size) {
  std::shared_ptr<Team> team;
  EXPECT_TRUE(ThreadTeam::make(size, &team).ok());
  return team;
}

struct Counts {
  std::array<std::atomic<int>, 32> of{};
};
// Leaves time for others to come.
void countPiece(void* arg, int piece) {
  std::this_thread::yield();
  static_cast<Counts*>(arg)->of[static_cast<std::size_t>(piece)].fetch_add(1);
}

class Teams : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Teams, RunEachPieceOnce) {
  const std::shared_ptr<Team> team = teamOf(GetParam());
  Counts counts;
  std::array<int, 32> expected{};
  std::mt19937 random(7);
  for (int job = 0; job < (test::kSlowBuild ? 500 : 2000); ++job) {
    if (job % 100 == 0) team->stayAwake();
    if (job % 100 == 50) team->rest();
    const auto pieces = static_cast<std::uint32_t>(random() % (team->size() + 1));
    for (std::uint32_t k = 0; k < pieces; ++k) ++expected[k];
    team->run(pieces, countPiece, &counts, random() % 2 == 0);
    for (std::size_t k = 0; k < expected.size(); ++k) ASSERT_EQ(counts.of[k], expected[k]) << job;
  }
}

// Helpers that have just woken, wait awake, or sleep.
TEST_P(Teams, EndInAnyState) {
  for (int i = 0; i < 50; ++i) {
    const std::shared_ptr<Team> team = teamOf(GetParam());
    Counts counts;
    if (i % 3 != 0) team->stayAwake();
    if (i % 2 != 0) team->run(team->size(), countPiece, &counts, true);
    if (i % 3 == 1) team->rest();
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Teams, testing::Values(2, 3, 8, 32));

// Threads of this process other than the caller's that the kernel says are not asleep.
int awakeThreads() {
  int awake = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string line;
    std::getline(std::ifstream(task.path() / "stat"), line);
    if (task.path().filename() != std::to_string(::gettid()) &&
        line.find(") S ") == std::string::npos)
      ++awake;
  }
  return awake;
}

// Of all threads of this process.
struct Usage {
  double ms;
  long switches;
};
Usage usage() {
  rusage now{};
  ::getrusage(RUSAGE_SELF, &now);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return {ms(now.ru_utime) + ms(now.ru_stime), now.ru_nvcsw};
}

TEST(ThreadTeam, SleepsBetweenCalls) {
  const std::shared_ptr<Team> team = teamOf(8);
  Counts counts;
  for (int call = 0; call < 3; ++call) {
    team->stayAwake();
    team->run(8, countPiece, &counts, true);
    team->rest();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (awakeThreads() != 0 && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(awakeThreads(), 0);
  }
}

// Beyond what it takes to fall asleep: a helper that spun, or looked again and again, would take a
// part of the pause.
TEST(ThreadTeam, TakesNoTimeOfTheProcessorBetweenCalls) {
  const std::shared_ptr<Team> team = teamOf(8);
  Counts counts;
  team->stayAwake();
  team->run(8, countPiece, &counts, true);
  team->rest();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (awakeThreads() != 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Usage before = usage();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Usage after = usage();
  EXPECT_LT(after.ms - before.ms, 20);
  EXPECT_LT(after.switches - before.switches, 20);
}

// Helpers that have come before anybody looks have taken their time, too.
TEST(ThreadTeam, NeverComesForNothing) {
  for (const std::uint32_t size : {2u, 3u, 8u}) {
    const std::shared_ptr<Team> team = teamOf(size);
    EXPECT_GT(team->costs().awakeNs, 0);
    EXPECT_GT(team->costs().asleepNs, 0);
  }
}

TEST(ThreadTeam, IsOfOneCallAtATime) {
  const std::shared_ptr<Team> team = teamOf(2);
  EXPECT_TRUE(team->take());
  EXPECT_FALSE(team->take());
  team->release();
  EXPECT_TRUE(team->take());
}

// The application's threads, all in one call: whoever leads has the others' help, the same thread
// each time, and nobody has the team between calls.
TEST(CallerTeam, ThreadsThatMakeACallTogetherShareItsPieces) {
  constexpr std::uint32_t kSize = 4, kCalls = 200;
  CallerTeam team(kSize);
  Counts counts;
  std::array<std::atomic<std::uint32_t>, kSize> led{};
  const auto callAll = [&](std::uint32_t thread) {
    for (std::uint32_t i = 0; i < kCalls; ++i) {
      CallerTeam::Caller me(team);
      ASSERT_TRUE(me.isSeated());
      me.arrive({i, nullptr});
      ASSERT_TRUE(me.awaitAll(Deadline::in(60000)));
      if (!me.leads()) {
        EXPECT_EQ(me.follow().code(), i % 2 == 0 ? Code::Ok : Code::Aborted);
        continue;
      }
      ++led[thread];
      for (std::uint32_t seat = 0; seat < kSize; ++seat)
        EXPECT_EQ(team.wishOf(seat).fingerprint, i);
      team.begin(i % 3 == 0);
      EXPECT_TRUE(team.take());
      team.run(kSize, countPiece, &counts, i % 5 != 0);
      team.release();
      team.end(i % 2 == 0 ? Status() : Status::error(Code::Aborted, "so"));
      EXPECT_FALSE(team.take());
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kSize; ++t) threads.emplace_back(callAll, t);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t k = 0; k < kSize; ++k) EXPECT_EQ(counts.of[k], int{kCalls});
  EXPECT_TRUE(std::ranges::any_of(led, [](const auto& calls) { return calls == kCalls; }));
}

// A pool that runs the pieces in a strange order, all on the caller's thread.
void backwards(void* context, int pieces, Team::Body body, void* arg) {
  ++*static_cast<int*>(context);
  for (int piece = pieces; piece-- > 0;) body(arg, piece);
}

std::vector<std::byte> randomBytes(std::mt19937_64& random, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::byte& b : made) b = static_cast<std::byte>(random());
  return made;
}

// A Fold of three sources into In and a Copy, both also to the arena.
plan::Plan planOf(reduce::DType type, reduce::RedOp op, std::uint64_t count, bool stream) {
  plan::Plan plan;
  plan.type = type;
  plan.elementBytes = reduce::sizeOf(type);
  plan.fold = reduce::foldKernel(type, op);
  plan.spread = reduce::spreadKernel(type, op);
  plan.divisor = op == reduce::RedOp::Avg ? 3 : 1;
  const std::uint64_t bytes = count * plan.elementBytes;
  for (std::uint64_t k = 0; k < 3; ++k) plan.operands.push_back({plan::Base::In, 0, k * bytes});
  plan.operands.push_back({plan::Base::Arena, 0, 0});
  plan::BoundOp& fold = plan.ops.emplace_back();
  fold.kind = plan::BoundOp::Kind::Fold;
  fold.finish = true;
  fold.stream = stream;
  fold.operands = 3;
  fold.spread = 1;
  fold.firstSpread = 3;
  fold.dst.base = plan::Base::Out;
  fold.max = fold.limit = bytes;
  plan::BoundOp& copy = plan.ops.emplace_back(fold);
  copy.kind = plan::BoundOp::Kind::Copy;
  copy.spread = 0;
  copy.src = {plan::Base::In, 0, bytes};
  copy.dst.offset = bytes;
  return plan;
}

constexpr std::size_t kAround = 64;

// What a team makes of it: Out, then the arena, with bytes around them.
std::vector<std::byte> resultOf(const plan::Plan& plan, std::vector<std::byte> in, const Crew& crew,
                                std::size_t shift) {
  test::StillTransport transport;
  PeerBuffers peers(transport);
  TeamCompute compute(peers, 4, crew);
  const std::uint64_t bytes = plan.ops[0].limit;
  std::vector<std::byte> out(3 * bytes + 2 * kAround + shift, std::byte{0xA5});
  std::byte* const base[] = {in.data(), out.data() + kAround + shift,
                             out.data() + kAround + shift + 2 * bytes, nullptr};
  const TeamCompute::Run run(compute, plan, nullptr);
  EXPECT_EQ(compute.work().hasTeam(), crew.team != nullptr);
  for (const plan::BoundOp& op : plan.ops)
    EXPECT_TRUE(compute.run({plan, base, nullptr, nullptr, 0, 0}, op, 0, bytes));
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(shift));
  return out;
}

// So slow a machine that every op is worth sharing.
Crew crewOf(std::shared_ptr<Team> team) { return {std::move(team), 64, 1e9}; }

// With any type, operation, count and alignment; and the bytes around stay as they are.
TEST(TeamCompute, GivesTheBitsOfOneThread) {
  int jobs = 0;
  std::vector<Crew> crews;
  for (const std::uint32_t size : {2u, 3u, 8u}) crews.push_back(crewOf(teamOf(size)));
  crews.push_back(crewOf(std::make_shared<PoolTeam>(5, Pool{backwards, &jobs})));
  std::mt19937_64 random(11);
  for (int t = 0; t < 10; ++t) {
    const auto type = static_cast<reduce::DType>(t);
    for (const std::uint64_t count : {1u, 63u, 4097u, 20011u}) {
      const auto op = std::array{reduce::RedOp::Sum, reduce::RedOp::Prod, reduce::RedOp::Max,
                                 reduce::RedOp::Avg}[random() % 4];
      const plan::Plan plan = planOf(type, op, count, random() % 2 == 0);
      const std::vector<std::byte> in = randomBytes(random, 3 * plan.ops[0].limit);
      const std::size_t shift = random() % 64;
      const std::vector<std::byte> expected = resultOf(plan, in, {}, shift);
      for (const Crew& crew : crews)
        EXPECT_EQ(resultOf(plan, in, crew, shift), expected)
            << reduce::name(type) << ' ' << reduce::name(op) << " x " << count << ", "
            << crew.team->size() << " threads";
    }
  }
  EXPECT_GT(jobs, 80);
}

// Peers' memory that is reached by copies alone, as by CMA; `bad`: no copy reaches that byte.
class CopyingTransport : public test::StillTransport {
 public:
  explicit CopyingTransport(const std::byte* bad) : StillTransport(3), bad_(bad) {}

  bool getFrom(std::uint32_t, std::uint64_t from, void* to, std::size_t bytes) override {
    return copy(to, reinterpret_cast<const std::byte*>(from), bytes);
  }
  bool putTo(std::uint32_t, std::uint64_t to, const void* from, std::size_t bytes) override {
    return copy(reinterpret_cast<void*>(to), static_cast<const std::byte*>(from), bytes);
  }

 private:
  bool copy(void* to, const std::byte* from, std::size_t bytes) const {
    if (bad_ >= from && bad_ < from + bytes) return false;
    std::memcpy(to, from, bytes);
    return true;
  }

  const std::byte* const bad_;
};

// Out of rank 0 and then of rank 1, when the first has added what all three have; empty if a copy
// fails.
std::vector<std::byte> sumByCopies(const std::vector<std::byte>& in, const Crew& crew,
                                   const std::byte* bad) {
  plan::Plan plan = planOf(reduce::DType::F32, reduce::RedOp::Avg, in.size() / 12, false);
  const std::uint64_t bytes = plan.ops[0].limit;
  for (std::uint32_t k = 0; k < 3; ++k) plan.operands[k] = {plan::Base::PeerIn, k, 0};
  plan.operands[3] = {plan::Base::PeerOut, 1, 0};
  plan.ops[0].crossings = 4;
  std::vector<std::byte> out(2 * bytes);
  CopyingTransport transport(bad);
  PeerBuffers peers(transport);
  for (std::uint32_t k = 0; k < 3; ++k)
    EXPECT_TRUE(peers.admit(k, {.out = out.data() + bytes, .in = in.data() + k * bytes}));
  EXPECT_FALSE(peers.mapped());
  TeamCompute compute(peers, 4, crew);
  std::byte* const base[] = {nullptr, out.data(), nullptr, nullptr};
  const TeamCompute::Run run(compute, plan, nullptr);
  const bool done = compute.run({plan, base, nullptr, nullptr, 0, 0}, plan.ops[0], 0, bytes);
  return done ? out : std::vector<std::byte>();
}

TEST(TeamCompute, SharesCopiesByTheKernel) {
  int jobs = 0;
  std::mt19937_64 random(5);
  const std::vector<std::byte> in = randomBytes(random, std::size_t{12} * 100003);
  const std::vector<std::byte> expected = sumByCopies(in, {}, nullptr);
  std::vector<Crew> crews = {crewOf(teamOf(3)),
                             crewOf(std::make_shared<PoolTeam>(5, Pool{backwards, &jobs}))};
  const int before = jobs;
  for (const Crew& crew : crews) {
    EXPECT_EQ(sumByCopies(in, crew, nullptr), expected);
    // Any piece that fails, fails the op.
    for (const std::size_t at : {std::size_t{0}, in.size() / 2, in.size() - 1})
      EXPECT_TRUE(sumByCopies(in, crew, in.data() + at).empty());
  }
  EXPECT_EQ(jobs, before + 4);
}

// What a piece throws is thrown to whoever runs the op, whichever thread had it.
TEST(TeamWork, ThrowsWhatAPieceThrows) {
  int jobs = 0;
  for (const Crew& crew :
       {crewOf(teamOf(3)), crewOf(std::make_shared<PoolTeam>(3, Pool{backwards, &jobs}))})
    for (const std::uint32_t bad : {0u, 2u}) {
      TeamWork work(crew);
      const TeamWork::Call call(work, 1e9);
      const auto body = [&](std::uint32_t piece, std::uint64_t, std::uint64_t) {
        if (piece == bad) throw std::bad_alloc();
        return true;
      };
      EXPECT_THROW((void)work.share(3, 300, body), std::bad_alloc);
    }
}

// Knows whether its helpers may be awake.
class Watched final : public Team {
 public:
  Watched() : Team(2) {}
  void stayAwake() override { mayBeAwake = true; }
  void rest() override { mayBeAwake = false; }
  void run(std::uint32_t pieces, Body body, void* arg, bool) override {
    for (std::uint32_t piece = 0; piece < pieces; ++piece) body(arg, static_cast<int>(piece));
  }

  bool mayBeAwake = false;
};

// Of steady calls, too, and of those that end with an exception, are short, or find the team taken.
TEST(TeamWork, LetsHelpersBeAwakeInCallsAlone) {
  const auto team = std::make_shared<Watched>();
  TeamWork work(crewOf(team)), other(crewOf(team));
  for (const bool throws : {false, true, false}) {
    const auto callOnce = [&] {
      const TeamWork::Call call(work, 1e9);
      EXPECT_TRUE(team->mayBeAwake);
      {
        const TeamWork::Call without(other, 1e9);
        EXPECT_FALSE(other.hasTeam());
      }
      EXPECT_TRUE(team->mayBeAwake);
      (void)work.share(2, 200, [&](std::uint32_t, std::uint64_t, std::uint64_t) {
        if (throws) throw std::bad_alloc();
        return true;
      });
    };
    if (throws)
      EXPECT_THROW(callOnce(), std::bad_alloc);
    else
      callOnce();
    EXPECT_FALSE(team->mayBeAwake);
    const TeamWork::Call tooShort(work, -1);
    EXPECT_FALSE(team->mayBeAwake);
  }
}

// Adds its elements up, with one more of its kind for each of so many threads.
class Summing : public plan::Epilogue {
 public:
  explicit Summing(std::uint32_t threads) {
    for (std::uint32_t k = 1; k < threads; ++k) beside_.push_back(std::make_unique<Summing>(1));
  }

  void run(void* result, std::span<const void* const> addends, std::uint64_t first,
           std::size_t count) override {
    EXPECT_EQ(first * 4 % plan::kTileBytes, 0U);
    const auto* const in = static_cast<const std::uint32_t*>(addends[0]);
    sum_ += std::accumulate(in, in + count, std::uint64_t{0});
    std::copy_n(in, count, static_cast<std::uint32_t*>(result));
  }
  Epilogue* ofThread(std::uint32_t k) override {
    return k == 0 ? this : k <= beside_.size() ? beside_[k - 1].get() : nullptr;
  }
  // Of all, and how many have had a part in it.
  std::pair<std::uint64_t, std::uint32_t> total() const {
    std::pair<std::uint64_t, std::uint32_t> all{sum_, sum_ != 0};
    for (const auto& one : beside_) all.first += one->sum_, all.second += one->sum_ != 0;
    return all;
  }

 private:
  std::uint64_t sum_ = 0;
  std::vector<std::unique_ptr<Summing>> beside_;
};

// In the tiles of one thread, each by the epilogue of the thread that has it.
TEST(TeamCompute, SharesEpiloguesThatHaveSeveralThreads) {
  int jobs = 0;
  const Crew crew = crewOf(std::make_shared<PoolTeam>(5, Pool{backwards, &jobs}));
  plan::Plan plan = planOf(reduce::DType::U32, reduce::RedOp::Sum, 20 * 16384 + 5, false);
  plan.callsEpilogue = true;
  plan.ops[0].spread = 0;
  std::mt19937_64 random(7);
  const std::uint64_t bytes = plan.ops[0].limit;
  std::vector<std::byte> in = randomBytes(random, 3 * bytes), out(bytes);
  std::byte* const base[] = {in.data(), out.data(), nullptr, nullptr};
  const auto* const words = reinterpret_cast<const std::uint32_t*>(in.data());
  const auto sum = std::accumulate(words, words + bytes / 4, std::uint64_t{0});
  for (const std::uint32_t threads : {1u, 3u, 5u}) {
    Summing epilogue(threads);
    test::StillTransport transport;
    PeerBuffers peers(transport);
    TeamCompute compute(peers, 4, crew);
    const TeamCompute::Run run(compute, plan, &epilogue);
    EXPECT_TRUE(compute.run({plan, base, nullptr, &epilogue, 0, 0}, plan.ops[0], 0, bytes));
    EXPECT_EQ(epilogue.total(), std::pair(sum, threads));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
  }
}

// Where nothing is to be gained, nothing is shared.
TEST(TeamCompute, LeavesShortOpsToOneThread) {
  int jobs = 0;
  const auto team = std::make_shared<PoolTeam>(4, Pool{backwards, &jobs});
  const int before = jobs;
  const plan::Plan plan = planOf(reduce::DType::F32, reduce::RedOp::Sum, 1000, false);
  std::mt19937_64 random(3);
  const std::vector<std::byte> in = randomBytes(random, 3 * plan.ops[0].limit);
  test::StillTransport transport;
  PeerBuffers peers(transport);
  TeamCompute compute(peers, 4, {team, 64, 1e-12});
  const TeamCompute::Run run(compute, plan, nullptr);
  EXPECT_FALSE(compute.work().hasTeam());
  EXPECT_EQ(jobs, before);
}

}  // namespace
}  // namespace weft::engine
