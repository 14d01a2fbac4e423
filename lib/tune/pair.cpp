// SPDX-License-Identifier: Apache-2.0
// Two threads that throw a ball: a flag, or several flags.
#include "tune/pair.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "base/threads.h"
#include "topology/numa.h"
#include "tune/patience.h"
#include "tune/processor.h"
#include "tune/stopwatch.h"

namespace weft::tune {
namespace {

constexpr std::uint32_t kFlags = 8;

struct Game {
  std::uint32_t flags = 1;
  bool sameCore = false;
  int throws = 16;
};
enum { kExchange, kMessage, kHandOver, kGames };
constexpr Game kGame[kGames] = {{.throws = 50}, {.flags = kFlags}, {.sameCore = true, .throws = 8}};
constexpr int kTries = 8;

struct alignas(64) Flag {
  std::atomic<std::uint32_t> value{0};
};

using End = std::array<Flag, kFlags>;  // what the other player writes to

struct Court {
  TwoCores cores;
  End ends[2];
  Patience patience;
  std::atomic<long> evictions{0};  // while each player had a core of its own
  Fastest round[kGames];
};

class Player {
 public:
  Player(Court& court, std::size_t side)
      : court_(court), mine_(court.ends[side]), theirs_(court.ends[1 - side]) {}

  void hit(const Game& game) {
    ++sent_;
    for (std::uint32_t i = 0; i < game.flags; ++i)
      theirs_[i].value.store(sent_, std::memory_order_release);
  }
  void await(const Game& game) {
    ++seen_;
    for (std::uint32_t i = 0; i < game.flags; ++i) {
      while (mine_[i].value.load(std::memory_order_acquire) != seen_ && goesOn(game)) {
      }
    }
  }

 private:
  bool goesOn(const Game& game) {
    game.sameCore ? static_cast<void>(sched_yield()) : relax();
    return court_.patience.goesOn(&polls_);
  }

  Court& court_;
  End& mine_;
  End& theirs_;
  std::uint32_t sent_ = 0, seen_ = 0, polls_ = 0;
};

// The server has the watch.
void timeGame(Court& court, Player& player, int number) {
  const Game& game = kGame[number];
  for (int i = 0; i < kTries && !court.patience.isOver(); ++i) {
    const double start = nowNs();
    for (int k = 0; k < game.throws; ++k) {
      player.hit(game);
      player.await(game);
    }
    if (!court.patience.isOver()) court.round[number].add((nowNs() - start) / game.throws);
  }
}

void returnBalls(Player& player, const Game& game) {
  for (int k = 0; k < kTries * game.throws; ++k) {
    player.await(game);
    player.hit(game);
  }
}

Status play(Court& court, std::size_t side) {
  Player player(court, side);
  bool placed = court.cores.place(court.cores.away < 0 ? 0 : side);
  court.patience.meet();
  const long before = evictions();
  for (int g = 0; g < kGames; ++g) {
    if (!kGame[g].sameCore && court.cores.away < 0) continue;
    if (kGame[g].sameCore) {
      court.evictions += evictions() - before;
      placed = court.cores.place(0) && placed;
    }
    if (!placed) court.patience.end();
    if (side == 0)
      timeGame(court, player, g);
    else
      returnBalls(player, kGame[g]);
  }
  return {};
}

PairTimes timesOf(const Court& court) {
  PairTimes times;
  const auto known = [](const Fastest& fastest) { return fastest.ns() < Patience::kNs; };
  times.evictions = court.evictions;
  times.steady = true;
  for (int g = 0; g < kGames; ++g)
    if (kGame[g].sameCore || court.cores.away >= 0)
      times.steady = times.steady && court.round[g].confirmed();
  const double handOver = court.round[kHandOver].ns() / 2;
  if (handOver < PairTimes::kTimeSlice) times.handOver = handOver;
  if (known(court.round[kExchange])) times.exchange = court.round[kExchange].ns() / 2;
  if (known(court.round[kMessage]))
    times.message = std::max(0.0, court.round[kMessage].ns() / 2 - times.exchange) / (kFlags - 1);
  times.complete = known(court.round[kHandOver]) && (court.cores.away < 0 || times.exchange > 0);
  return times;
}

// It cannot do threads of a process that was forked from one with threads, as tests' are.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

TwoCores findCores(Node node) {
  TwoCores cores{.home = sched_getcpu()};
  if (kThreadSanitizer) return cores;
  const SignalsBlocked blocked;
  (void)onThreads(1, [&](std::size_t) -> Status {
    cores.away = moveToOtherCore(cores.home, node);
    return {};
  });
  return cores;
}

}  // namespace

bool TwoCores::place(std::size_t side) const {
  const int core = side == 0 ? home : away;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  return core >= 0 && sched_setaffinity(0, sizeof(set), &set) == 0;
}

TwoCores findTwoCores() {
  const TwoCores cores = findCores(Node::Same);
  return cores.away < 0 && topology::numaNodes() > 1 ? findCores(Node::Any) : cores;
}

TwoCores findFarCores() { return topology::numaNodes() > 1 ? findCores(Node::Other) : TwoCores(); }

PairTimes measurePair() {
  if (kThreadSanitizer) return {};
  const SignalsBlocked blocked;
  Court court;
  court.cores = findTwoCores();
  const Status played = onThreads(2, [&](std::size_t side) { return play(court, side); });
  return played.ok() ? timesOf(court) : PairTimes{.complete = false};
}

}  // namespace weft::tune
