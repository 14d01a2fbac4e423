// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/handles.h"
#include "base/invalid.h"
#include "base/no_fork.h"
#include "base/status.h"
#include "base/threads.h"
#include "comm/communicator.h"
#include "engine/work_stream.h"
#include "weft/weft.h"

// What every C entry point needs: its objects by handle, and an end for exceptions.
namespace weft::api {

using CommHandles = Handles<comm::Communicator, 0x57>;
using StreamHandles = Handles<engine::WorkStream, 0x58>;
using EventHandles = Handles<engine::WorkEvent, 0x59>;
inline CommHandles& commHandles() { return processWide<CommHandles>(); }
StreamHandles& streamHandles();
EventHandles& eventHandles();

// The object behind a handle, or InvalidArgument with a sentence (InvalidUsage for one that was
// made before this process was forked).
Status shareComm(weftComm_t handle, std::shared_ptr<comm::Communicator>* comm);
Status shareStream(weftStream_t handle, std::shared_ptr<engine::WorkStream>* stream);
Status shareEvent(weftEvent_t handle, std::shared_ptr<engine::WorkEvent>* event);

// Forgets what weftCommRegister declared of a communicator that is destroyed.
void dropRegistrations(const comm::Communicator& comm);

// A call of this thread begins; shareComm notes its communicator.
void beginCall();
// The communicator of this thread's latest call, if it names one, and again if that call failed. In the
// first TLS block, so that reading it costs no call.
struct LatestCall {
  weftComm_t on = nullptr;
  weftComm_t failedOn = nullptr;
};
extern constinit thread_local LatestCall latestCall [[gnu::tls_model("initial-exec")]];
// One on a communicator; none if there is none such, and then why.
[[gnu::always_inline]] inline CommHandles::Pin beginCallOn(weftComm_t handle) {
  latestCall = {.on = handle};
  return commHandles().find(handle);
}
Status noSuchComm(weftComm_t handle);
// The code as the C API knows it.
weftResult_t resultOf(const Status& status);
// Keeps the error for weftGetLastError of this thread; returns its code.
weftResult_t report(const Status& status);
// The last error that a call of this thread was given; OK if there was none.
const Status& lastErrorOfThread();
// Was this thread's latest call one on `comm`, and did it fail?
bool hasJustFailedOn(weftComm_t comm);

// Runs an entry point: no exception leaves it.
template <class Body>
weftResult_t entry(Body&& body) noexcept {
  beginCall();
  const Status status = withoutExceptions(body);
  return status.ok() ? weftSuccess : report(status);
}

// The same for a call on a communicator.
template <class Body>
weftResult_t onComm(weftComm_t handle, Body&& body) noexcept {
  const Status status = withoutExceptions([&]() -> Status {
    const CommHandles::Pin comm = beginCallOn(handle);
    return comm ? body(*comm) : noSuchComm(handle);
  });
  return status.ok() ? weftSuccess : report(status);
}

// Gives the caller handles of what was made, all or none; `what` is its plural.
template <class Table, class Object, class Handle>
Status publish(Table& table, std::span<std::shared_ptr<Object>> made, const char* what,
               Handle* out) {
  std::vector<std::uintptr_t> handles(made.size());
  if (!table.addAll(made, handles.data()))
    return Status::error(Code::InvalidUsage, "this process has ", Table::kCapacity, " ", what,
                         ", or would have more; fix: destroy some");
  for (const std::uintptr_t handle : handles) *out++ = reinterpret_cast<Handle>(handle);
  return {};
}
template <class Table, class Object, class Handle>
Status publish(Table& table, std::shared_ptr<Object> made, const char* what, Handle* out) {
  return publish(table, std::span(&made, 1), what, out);
}

}  // namespace weft::api
