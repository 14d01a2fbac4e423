// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/weft.h>

#include <functional>
#include <string>
#include <vector>

// Worlds of ranks for tests: threads of this process, or processes forked from it.
namespace weft::testing {

// One rank's view: its number, the number of ranks, its communicator.
struct Rank {
  int rank = 0;
  int ranks = 1;
  weftComm_t comm = nullptr;
};

enum class Kind { Threads, Processes };
std::string nameOf(Kind kind);

// What a world is made of; `transport` as in weftConfig_t, timeouts in ms.
struct World {
  Kind kind = Kind::Threads;
  int ranks = 2;
  const char* transport = "auto";
  int timeoutMs = 20000;
};

// Runs `body` on every rank, with a communicator that is destroyed afterwards. Returns what went
// wrong, a line a rank: a rank fails by returning a non-empty text. In processes, gtest's own
// assertions do not reach the parent, so bodies return texts in either kind.
using Body = std::function<std::string(const Rank&)>;
std::vector<std::string> run(const World& world, const Body& body);

// As run(), and joins the texts that are not empty.
std::string failures(const World& world, const Body& body);

// How a rank that calls something ended: "" for success, else the result's name and the last error.
std::string outcome(weftResult_t result, weftComm_t comm);

// Forks `n` processes that call body(rank) before weft was used in this one; what each returns is
// its text. A rank that is killed has the text "killed by signal N".
std::vector<std::string> forkRanks(int n, const std::function<std::string(int)>& body);

// An id made in this process, for processes that are forked later on; creating one starts a thread.
weftConfig_t configOf(const World& world);

}  // namespace weft::testing
