// SPDX-License-Identifier: Apache-2.0
#include "comm/hire_team.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/log.h"
#include "engine/caller_team.h"
#include "engine/team.h"
#include "engine/thread_team.h"
#include "topology/cores.h"

namespace weft::comm {
namespace {

void warnOfFewCores(int threads, std::uint32_t cores) {
  static std::atomic<bool> warned{false};
  if (static_cast<std::uint32_t>(threads) <= cores || warned.exchange(true)) return;
  logWarn("a rank of this process has ", threads,
          " threads (WEFT_THREADS, weftConfig_t.threads) and ", cores,
          " core(s) to run on: no more work at a time; fix: fewer threads, or a wider affinity "
          "mask when the communicator is made");
}

}  // namespace

Status hireTeam(const cpu_set_t& cores, CommConfig* config) {
  const auto threads = static_cast<std::uint32_t>(config->threads);
  if (threads == 1 || config->team) return {};
  if (config->pool.parallelFor == nullptr)
    warnOfFewCores(config->threads, topology::usableCores(cores));
  if (config->teamCalls) {
    auto callers = std::make_shared<engine::CallerTeam>(threads);
    config->callers = callers.get();
    config->team = std::move(callers);
    return {};
  }
  if (config->pool.parallelFor == nullptr) return engine::ThreadTeam::make(threads, &config->team);
  config->team = std::make_shared<engine::PoolTeam>(threads, config->pool);
  return {};
}

}  // namespace weft::comm
