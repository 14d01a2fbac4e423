// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "api/check.h"
#include "api/entry.h"
#include "api/submit.h"

// How a call that has passed its checks goes on.
namespace weft::api {

// An entry point that issues a call on a communicator.
template <class Body>
weftResult_t issueOn(weftComm_t handle, const Body& body) noexcept {
  return onComm(handle, [&](comm::Communicator& comm) {
    return failingAll(comm, [&] { return body(comm); });
  });
}

// In the group, in the stream, or now.
Status hand(weftComm_t handle, weftStream_t streamHandle, const Options& options,
            comm::Operation operation);

// A call, and its buffers, in words for threads that disagree.
struct TeamWords {
  std::function<std::string()> call, buffers;
};

// The same for one that is made of sends and receives, by all threads of the rank if they make its
// calls together.
Status issue(comm::Communicator& comm, weftComm_t handle, weftStream_t stream,
             const Options& options, comm::Operation operation, const TeamWords& words);

std::string address(const void* of);
std::string addresses(const void* in, const void* out);  // " from 0x1 to 0x2"

}  // namespace weft::api
