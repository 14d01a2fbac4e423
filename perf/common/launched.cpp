// SPDX-License-Identifier: Apache-2.0
#include "perf/common/launched.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace weft::tools {
namespace {

struct Launcher {
  const char* present;  // a variable that only its ranks have
  const char* beside;   // and another one, or null
  const char* ranks;    // how many there are
};

// The innermost first, as the library asks them.
constexpr std::array kLaunchers = {
    Launcher{"WEFT_RANK", nullptr, "WEFT_SIZE"},
    Launcher{"WEFT_SIZE", nullptr, "WEFT_SIZE"},
    Launcher{"RANK", "MASTER_PORT", "WORLD_SIZE"},
    Launcher{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE"},
    Launcher{"PMIX_RANK", nullptr, "SLURM_STEP_NUM_TASKS"},
    Launcher{"PMI_RANK", nullptr, "PMI_SIZE"},
    Launcher{"SLURM_STEP_NUM_TASKS", nullptr, "SLURM_STEP_NUM_TASKS"},
    Launcher{"AWS_BATCH_JOB_NODE_INDEX", nullptr, "AWS_BATCH_JOB_NUM_NODES"}};

const char* valueOf(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool isPresent(const Launcher& one) {
  return *valueOf(one.present) != 0 && (one.beside == nullptr || *valueOf(one.beside) != 0);
}

}  // namespace

bool isStartedByLauncher() { return std::ranges::any_of(kLaunchers, isPresent); }

int launchedRanks() {
  const auto* const found = std::ranges::find_if(kLaunchers, isPresent);
  return found == kLaunchers.end() ? 1 : std::max(std::atoi(valueOf(found->ranks)), 0);
}

}  // namespace weft::tools
