// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "api/buffers.h"
#include "api/entry.h"
#include "api/submit.h"

// The short way of a short rooted call: one like the last call of its communicator, but for its buffers.
namespace weft::api {

inline bool isLike(const comm::Communicator::Repeat& last, schedule::Collective kind,
                   weftDataType_t type, weftRedOp_t op, int root, std::uint64_t count) {
  return last.count == count && last.root == root && last.collective == kind &&
         static_cast<weftDataType_t>(last.type) == type && static_cast<weftRedOp_t>(last.op) == op;
}

// False where the long way is to see to the call: because it is another one, or wrong, or not this
// thread's to make. (No std::optional: it would be loaded as one word after stores of its two parts, and
// so wait for all earlier stores.)
template <auto kBuffers>
[[gnu::always_inline]] inline bool repeat(weftComm_t handle, schedule::Collective kind,
                                          weftDataType_t type, weftRedOp_t op, int root,
                                          std::uint64_t count, const void* in, void* out,
                                          weftResult_t* result) noexcept {
  const CommHandles::OwnPin pin = commHandles().findOwn(handle);
  if (!pin || !(*pin).turns().beginIssue()) return false;
  comm::Communicator& comm = *pin;
  engine::Turns& turns = comm.turns();
  const comm::Communicator::Repeat& last = comm.repeat();
  bool runs = turns.allDone() && comm.mayRepeat() && isLike(last, kind, type, op, root, count);
  if (runs) [[likely]] {
    const Buffers buffers = kBuffers(comm, kind, root, in, out, count * reduce::sizeOf(last.type));
    runs = areRight(buffers);
    if (runs) [[likely]] {
      latestCall = {.on = handle};
      const std::uint64_t ticket = turns.take();
      const Status ran = comm.runRepeat(buffers.send.start, const_cast<void*>(buffers.recv.start));
      turns.doneWhileIssuing(ticket);
      *result = ran.ok() ? weftSuccess : report(ran);
    }
  }
  turns.endIssue();
  return runs;
}

}  // namespace weft::api
