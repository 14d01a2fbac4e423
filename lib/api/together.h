// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/hash.h"
#include "base/status.h"
#include "comm/communicator.h"

// Calls that all threads of a rank make together (weftConfig_t.teamCalls).
namespace weft::api {

// What one thread asks for.
struct TeamCall {
  Hash arguments;  // all that must be equal
  int timeoutMs;
  std::function<std::string()> describe, describeBuffers;
  std::function<Status()> run;
};

// One thread runs its call once all have come, and all return what it returns.
Status runTogether(comm::Communicator& comm, const TeamCall& mine);

// Of a stream, or a group.
Status notTogether(const comm::Communicator& comm);

}  // namespace weft::api
