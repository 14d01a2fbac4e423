// SPDX-License-Identifier: Apache-2.0
#include "api/issue.h"

#include <array>
#include <cstdio>
#include <utility>

#include "api/together.h"
#include "base/text.h"

namespace weft::api {
namespace {

Hash argumentsOf(const comm::Operation& o) {
  Hash arguments;
  for (const engine::PairOp& pair : o.pairs) {
    arguments.add(pair.isSend).add(pair.peer).add(pair.count);
    arguments.add(static_cast<std::uint64_t>(pair.type));
    arguments.add(reinterpret_cast<std::uintptr_t>(pair.data));
  }
  return arguments.add(plan::packWhat(o.call));
}

}  // namespace

Status hand(weftComm_t handle, weftStream_t streamHandle, const Options& options,
            comm::Operation o) {
  o.timeoutMs = options.timeoutMs;
  if (options.label) o.label = options.label;
  std::shared_ptr<comm::Communicator> comm;
  std::shared_ptr<engine::WorkStream> stream;
  WEFT_TRY(shareComm(handle, &comm));
  if (streamHandle) WEFT_TRY(shareStream(streamHandle, &stream));
  return submit(std::move(comm), std::move(stream), std::move(o));
}

Status issue(comm::Communicator& comm, weftComm_t handle, weftStream_t stream,
             const Options& options, comm::Operation operation, const TeamWords& words) {
  if (comm.callers() == nullptr) return hand(handle, stream, options, std::move(operation));
  if (stream || inGroup()) return notTogether(comm);
  return runTogether(comm, {argumentsOf(operation), options.timeoutMs, words.call, words.buffers,
                            [&] { return hand(handle, nullptr, options, operation); }});
}

std::string address(const void* of) {
  std::array<char, 32> hex;
  std::snprintf(hex.data(), hex.size(), "%p", of);
  return hex.data();
}

std::string addresses(const void* in, const void* out) {
  return text(" from ", address(in), " to ", address(out));
}

}  // namespace weft::api
