// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_team.h"

#include "base/threads.h"

namespace weft::engine {

Status ThreadTeam::make(std::uint32_t size, std::shared_ptr<Team>* out) {
  return withoutExceptions([&]() -> Status {
    auto team = std::make_shared<ThreadTeam>(size);
    team->start();
    team->measure();
    *out = std::move(team);
    return {};
  });
}

void ThreadTeam::start() {
  const SignalsBlocked blocked;
  helpers_.reserve(size() - 1);
  for (std::uint32_t member = 1; member < size(); ++member)
    helpers_.emplace_back([this, member] { help(member, 0); });
}

ThreadTeam::~ThreadTeam() {
  sendHome();
  for (std::thread& helper : helpers_) helper.join();
}

}  // namespace weft::engine
