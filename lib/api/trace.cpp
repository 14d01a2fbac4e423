// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "api/check.h"
#include "api/entry.h"
#include "api/submit.h"
#include "plan/plan.h"

namespace weft::api {
namespace {

using engine::OpSpan;

static_assert(sizeof(weftOpSpan_t) == sizeof(OpSpan));
static_assert(offsetof(weftOpSpan_t, bytes) == offsetof(OpSpan, bytes));
static_assert(offsetof(weftOpSpan_t, lane) == offsetof(OpSpan, lane));
static_assert(offsetof(weftOpSpan_t, peer) == offsetof(OpSpan, peer));

Status startTrace(comm::Communicator& comm, weftOpSpan_t* spans, std::size_t room) {
  if (room == 0) return invalid("room is 0 spans; fix: one for each op that is to be kept");
  WEFT_TRY(checkPointer(spans, "spans"));
  return runInTurn(comm, [&]() -> Status {
    if (comm.isTraced())
      return Status::error(Code::InvalidUsage, "communicator ", comm.name(),
                           " is traced already; fix: weftCommTraceStop first");
    comm.trace(reinterpret_cast<OpSpan*>(spans), room);
    return {};
  });
}

Status stopTrace(comm::Communicator& comm, std::size_t* made) {
  WEFT_TRY(checkPointer(made, "made"));
  return runInTurn(comm, [&]() -> Status {
    if (!comm.isTraced())
      return Status::error(Code::InvalidUsage, "communicator ", comm.name(),
                           " is not traced; fix: weftCommTraceStart first");
    *made = comm.endTrace();
    return {};
  });
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;
using weft::comm::Communicator;

weftResult_t weftCommTraceStart(weftComm_t comm, weftOpSpan_t* spans, size_t room) {
  return onComm(comm, [&](Communicator& c) { return startTrace(c, spans, room); });
}

weftResult_t weftCommTraceStop(weftComm_t comm, size_t* made) {
  return onComm(comm, [&](Communicator& c) { return stopTrace(c, made); });
}

const char* weftOpName(int kind) {
  constexpr int kKinds = static_cast<int>(weft::plan::BoundOp::Kind::Publish) + 1;
  if (kind < 0 || kind >= kKinds) return "unknown op";
  return weft::plan::nameOf(static_cast<weft::plan::BoundOp::Kind>(kind));
}
