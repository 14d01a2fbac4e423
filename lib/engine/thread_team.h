// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/seated_team.h"

namespace weft::engine {

// A team with helpers of its own. They have the affinity mask of the thread that makes it, take no
// signals, and sleep while no call has the team.
class ThreadTeam final : public SeatedTeam {
 public:
  // Starts size - 1 helpers, and measures what it takes until all have come.
  static Status make(std::uint32_t size, std::shared_ptr<Team>* out);
  explicit ThreadTeam(std::uint32_t size) : SeatedTeam(size) {}
  ~ThreadTeam() override;

 private:
  void start();

  std::vector<std::thread> helpers_;
};

}  // namespace weft::engine
