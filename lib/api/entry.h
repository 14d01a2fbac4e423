// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "api/handles.h"
#include "base/status.h"
#include "base/threads.h"
#include "comm/communicator.h"
#include "engine/work_stream.h"
#include "weft/weft.h"

// What every C entry point needs: its objects by handle, and an end for exceptions.
namespace weft {

using CommHandles = Handles<Communicator, 0x57>;
using StreamHandles = Handles<WorkStream, 0x58>;
using EventHandles = Handles<WorkEvent, 0x59>;
CommHandles& commHandles();
StreamHandles& streamHandles();
EventHandles& eventHandles();

// The object behind a handle, or InvalidArgument with a sentence (InvalidUsage for one that was
// made before this process was forked).
Status findComm(weftComm_t handle, Communicator** comm);
Status shareComm(weftComm_t handle, std::shared_ptr<Communicator>* comm);
Status shareStream(weftStream_t handle, std::shared_ptr<WorkStream>* stream);
Status shareEvent(weftEvent_t handle, std::shared_ptr<WorkEvent>* event);

// Forgets what weftCommRegister declared of a communicator that is destroyed.
void dropRegistrations(const Communicator& comm);

// A call of this thread begins, which findComm and shareComm tell the communicator of.
void beginCall();
// Keeps the text for weftGetLastError of this thread; returns the code as the C API knows it.
weftResult_t report(const Status& status);
const char* lastErrorOfThread();
// Was this thread's latest call one on `comm`, and did it fail?
bool hasJustFailedOn(weftComm_t comm);

// Runs an entry point: no exception leaves it.
template <class Body>
weftResult_t entry(Body&& body) noexcept {
  beginCall();
  const Status status = withoutExceptions(body);
  return status.ok() ? weftSuccess : report(status);
}

inline Status invalid(std::string why) {
  return Status::error(Code::InvalidArgument, std::move(why));
}

}  // namespace weft
