// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "world.h"

// Threads of one rank that make its calls together (weftConfig_t.teamCalls).
namespace weft::testing {

// What body(thread) returns in each of `threads` threads, side by side.
inline std::vector<std::string> inRegion(int threads, const std::function<std::string(int)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] { texts[static_cast<std::size_t>(t)] = body(t); });
  for (std::thread& thread : team) thread.join();
  return texts;
}

// A communicator of the same ranks that `threads` threads of each call together, during `body`.
inline std::string withTeamCalls(const Rank& r, int threads,
                                 const std::function<std::string(const Rank&)>& body) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.threads = threads;
  config.teamCalls = 1;
  Rank team = r;
  if (const auto made = weftCommSplit(r.comm, 0, r.rank, &team.comm, &config); made != weftSuccess)
    return outcome(made, r.comm);
  const std::string failed = body(team);
  const weftResult_t ended = weftCommDestroy(team.comm);
  return failed.empty() ? outcome(ended, nullptr) : failed;
}

}  // namespace weft::testing
