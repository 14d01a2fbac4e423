// SPDX-License-Identifier: Apache-2.0
#include "api/entry.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace weft::api {

constinit std::atomic<std::uint32_t> forks{0};
constinit thread_local LatestCall latestCall [[gnu::tls_model("initial-exec")]];

namespace {

// Registered when the library is loaded.
[[maybe_unused]] const int forkHandler =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

// The main thread's own objects end before static ones, whose destructors may still call: what they
// are told is kept for good.
constinit thread_local bool threadEnds = false;
constinit thread_local Status* toldAtEnd = nullptr;

Status& lastError() {
  struct Told {
    Status status;
    ~Told() { threadEnds = true; }
  };
  thread_local Told told;
  if (!threadEnds) return told.status;
  if (toldAtEnd == nullptr) toldAtEnd = new Status;
  return *toldAtEnd;
}

template <class Handles>
Status unknownHandle(Handles& handles, const void* handle, const char* what) {
  if (handles.isParents(handle))
    return Status::error(Code::InvalidUsage, what,
                         " was made before fork() and belongs to the parent; this is pid ",
                         ::getpid(), "; fix: create it after fork, or use spawn");
  if (handle == nullptr) return invalid(what, " is NULL");
  return invalid(what, " is not a valid handle: it was destroyed, or never made by weft");
}

template <class Handles, class Object>
Status share(Handles& handles, const void* handle, const char* what, std::shared_ptr<Object>* out) {
  const auto pin = handles.find(handle);
  if (!pin) return unknownHandle(handles, handle, what);
  *out = pin.shared();
  return {};
}

}  // namespace

StreamHandles& streamHandles() { return processWide<StreamHandles>(); }
EventHandles& eventHandles() { return processWide<EventHandles>(); }

Status noSuchComm(weftComm_t handle) { return unknownHandle(commHandles(), handle, "comm"); }

Status shareComm(weftComm_t handle, std::shared_ptr<comm::Communicator>* comm) {
  latestCall.on = handle;
  return share(commHandles(), handle, "comm", comm);
}
Status shareStream(weftStream_t handle, std::shared_ptr<engine::WorkStream>* stream) {
  return share(streamHandles(), handle, "stream", stream);
}
Status shareEvent(weftEvent_t handle, std::shared_ptr<engine::WorkEvent>* event) {
  return share(eventHandles(), handle, "event", event);
}

void beginCall() { latestCall = {}; }

weftResult_t report(const Status& status) {
  lastError() = status;
  latestCall.failedOn = latestCall.on;
  return resultOf(status);
}

weftResult_t resultOf(const Status& status) {
  return status.code() == Code::LinkLost ? weftRemoteError
                                         : static_cast<weftResult_t>(status.code());
}

bool hasJustFailedOn(weftComm_t comm) { return comm != nullptr && latestCall.failedOn == comm; }

const Status& lastErrorOfThread() { return lastError(); }

}  // namespace weft::api
