// SPDX-License-Identifier: Apache-2.0
// Two threads that throw a ball: a flag, several flags, a full staging slot with its flag.
#include "tune/pair.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

#include "base/threads.h"
#include "tune/processor.h"
#include "tune/stopwatch.h"

namespace weft::tune {
namespace {

constexpr std::uint32_t kFlags = 8;
constexpr std::size_t kSlotBytes = 32 << 10;
// The other one has been pushed off its core. Whoever naps meanwhile is given its core at once when
// the other comes back, also by a busy machine, and then both play.
constexpr std::uint32_t kLostPolls = 2048;
constexpr std::chrono::microseconds kNap{20};
constexpr double kPatienceNs = 30e6;  // of all games; on a busy machine they are cut short

struct Game {
  std::uint32_t flags = 1;
  std::size_t bytes = 0;
  bool sameCore = false;
  int throws = 16;
};
enum { kExchange, kMessage, kSlot, kHandOver, kGames };
constexpr Game kGame[kGames] = {{.throws = 50},
                                {.flags = kFlags},
                                {.bytes = kSlotBytes, .throws = 2},
                                {.sameCore = true, .throws = 8}};
constexpr int kTries = 8;

struct alignas(64) Flag {
  std::atomic<std::uint32_t> value{0};
};

// What the other player writes to, and a buffer of one's own; half a page apart from the slots, for
// loads that lie like an earlier store within their page take it for their own and wait.
struct alignas(4096) End {
  char slot[kSlotBytes] = {};
  std::array<Flag, kFlags> flags;
  alignas(2048) char gap[2048];
  char buffer[kSlotBytes] = {};
};

struct Court {
  int home = 0;
  int away = -1;  // -1: there is no second core
  End ends[2];
  std::atomic<bool> over{false};
  std::atomic<int> present{0};
  std::atomic<double> until{std::numeric_limits<double>::infinity()};
  std::atomic<long> evictions{0};  // while each player had a core of its own
  Fastest round[kGames], take;
};

bool moveTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  return core >= 0 && sched_setaffinity(0, sizeof(set), &set) == 0;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Player {
 public:
  Player(Court& court, std::size_t side)
      : court_(court), mine_(court.ends[side]), theirs_(court.ends[1 - side]) {}

  void hit(const Game& game) {
    if (game.bytes != 0) std::memcpy(theirs_.slot, mine_.buffer, game.bytes);
    ++sent_;
    for (std::uint32_t i = 0; i < game.flags; ++i)
      theirs_.flags[i].value.store(sent_, std::memory_order_release);
  }
  void await(const Game& game) {
    ++seen_;
    for (std::uint32_t i = 0; i < game.flags; ++i) {
      while (mine_.flags[i].value.load(std::memory_order_acquire) != seen_ && goesOn(game)) {
      }
    }
  }
  void take(const Game& game) {
    if (game.bytes != 0) std::memcpy(mine_.buffer, mine_.slot, game.bytes);
  }

 private:
  bool goesOn(const Game& game) {
    game.sameCore ? static_cast<void>(sched_yield()) : relax();
    if (++polls_ % 64 == 0 && nowNs() > court_.until) court_.over = true;
    if (polls_ % kLostPolls == 0) std::this_thread::sleep_for(kNap);
    return !court_.over.load(std::memory_order_relaxed);
  }

  Court& court_;
  End& mine_;
  End& theirs_;
  std::uint32_t sent_ = 0, seen_ = 0, polls_ = 0;
};

// One round of the player who serves; the time of its own load of the slot is added to `take`.
void serve(Player& player, const Game& game, double* take) {
  player.hit(game);
  player.await(game);
  if (game.bytes == 0) return;
  const double arrived = nowNs();
  player.take(game);
  *take += nowNs() - arrived;
}

void returnBall(Player& player, const Game& game) {
  player.await(game);
  player.take(game);
  player.hit(game);
}

// The server has the watch.
void timeGame(Court& court, Player& player, int number) {
  const Game& game = kGame[number];
  for (int i = 0; i < kTries && !court.over; ++i) {
    double take = 0;
    const double start = nowNs();
    for (int k = 0; k < game.throws; ++k) serve(player, game, &take);
    if (court.over) return;
    court.round[number].add((nowNs() - start) / game.throws);
    if (game.bytes != 0) court.take.add(take / game.throws);
  }
}

// Patience begins when both are there: a busy machine starts threads late.
void meet(Court& court) {
  if (++court.present == 2) court.until = nowNs() + kPatienceNs;
  while (court.present < 2) std::this_thread::sleep_for(kNap);
}

Status play(Court& court, std::size_t side) {
  Player player(court, side);
  bool placed = moveTo(side == 0 || court.away < 0 ? court.home : court.away);
  meet(court);
  const long before = evictions();
  for (int g = 0; g < kGames; ++g) {
    if (!kGame[g].sameCore && court.away < 0) continue;
    if (kGame[g].sameCore) {
      court.evictions += evictions() - before;
      placed = moveTo(court.home) && placed;
    }
    if (!placed) court.over = true;
    if (side == 0) {
      timeGame(court, player, g);
      continue;
    }
    for (int k = 0; k < kTries * kGame[g].throws; ++k) returnBall(player, kGame[g]);
  }
  return {};
}

PairTimes timesOf(const Court& court) {
  PairTimes times;
  const auto known = [](const Fastest& fastest) { return fastest.ns() < kPatienceNs; };
  times.evictions = court.evictions;
  times.steady = true;
  for (int g = 0; g < kGames; ++g)
    if (kGame[g].sameCore || court.away >= 0)
      times.steady = times.steady && court.round[g].confirmed();
  if (known(court.round[kHandOver])) times.handOver = court.round[kHandOver].ns() / 2;
  if (known(court.round[kExchange])) times.exchange = court.round[kExchange].ns() / 2;
  if (known(court.round[kMessage]))
    times.message = std::max(0.0, court.round[kMessage].ns() / 2 - times.exchange) / (kFlags - 1);
  // What is left of half a round: stores return before their lines have come.
  const double hop = court.round[kSlot].ns() / 2 - times.exchange;
  if (known(court.round[kSlot]))
    times.putPerByte = std::max(0.0, hop - court.take.ns()) / kSlotBytes;
  if (known(court.take)) times.takePerByte = court.take.ns() / kSlotBytes;
  times.complete = times.handOver > 0 && (court.away < 0 || times.putPerByte > 0);
  return times;
}

// It cannot do threads of a process that was forked from one with threads, as tests' are.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

}  // namespace

PairTimes measurePair() {
  if (kThreadSanitizer) return {};
  const SignalsBlocked blocked;
  const auto made = std::make_unique<Court>();
  Court& court = *made;
  court.home = sched_getcpu();
  const Status found = onThreads(1, [&](std::size_t) -> Status {
    court.away = moveToOtherCore(court.home);
    return {};
  });
  const Status played = onThreads(2, [&](std::size_t side) { return play(court, side); });
  return found.ok() && played.ok() ? timesOf(court) : PairTimes{.complete = false};
}

}  // namespace weft::tune
