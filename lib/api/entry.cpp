// SPDX-License-Identifier: Apache-2.0
#include "api/entry.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace weft {
namespace {

std::atomic<std::uint32_t> forks{0};

// Registered when the library is loaded.
[[maybe_unused]] const int forkHandler =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

std::string& lastError() {
  thread_local std::string line;
  return line;
}

// The communicator of this thread's latest call, if it names one, and again if that call failed.
struct LatestCall {
  weftComm_t on = nullptr;
  weftComm_t failedOn = nullptr;
};
constinit thread_local LatestCall latest;

template <class Handles>
Status unknownHandle(const Handles& handles, const void* handle, const char* what) {
  if (handles.isParents(handle))
    return Status::error(
        Code::InvalidUsage,
        text(what, " was made before fork() and belongs to the parent; this is pid ", ::getpid(),
             "; fix: create it after fork, or use spawn"));
  if (handle == nullptr) return invalid(text(what, " is NULL"));
  return invalid(text(what, " is not a valid handle: it was destroyed, or never made by weft"));
}

template <class Handles, class Object>
Status share(const Handles& handles, const void* handle, const char* what,
             std::shared_ptr<Object>* out) {
  *out = handles.share(handle);
  return *out ? Status() : unknownHandle(handles, handle, what);
}

}  // namespace

std::uint32_t forkCount() { return forks.load(std::memory_order_relaxed); }

// Never destroyed: handles may be used by other threads and atexit handlers until the very end.
CommHandles& commHandles() {
  static CommHandles& table = *new CommHandles;
  return table;
}
StreamHandles& streamHandles() {
  static StreamHandles& table = *new StreamHandles;
  return table;
}
EventHandles& eventHandles() {
  static EventHandles& table = *new EventHandles;
  return table;
}

Status findComm(weftComm_t handle, Communicator** comm) {
  latest.on = handle;
  *comm = commHandles().find(handle);
  return *comm ? Status() : unknownHandle(commHandles(), handle, "comm");
}

Status shareComm(weftComm_t handle, std::shared_ptr<Communicator>* comm) {
  latest.on = handle;
  return share(commHandles(), handle, "comm", comm);
}
Status shareStream(weftStream_t handle, std::shared_ptr<WorkStream>* stream) {
  return share(streamHandles(), handle, "stream", stream);
}
Status shareEvent(weftEvent_t handle, std::shared_ptr<WorkEvent>* event) {
  return share(eventHandles(), handle, "event", event);
}

void beginCall() { latest = {}; }

weftResult_t report(const Status& status) {
  lastError() = status.text();
  latest.failedOn = latest.on;
  return status.code() == Code::LinkLost ? weftRemoteError
                                         : static_cast<weftResult_t>(status.code());
}

bool hasJustFailedOn(weftComm_t comm) { return comm != nullptr && latest.failedOn == comm; }

const char* lastErrorOfThread() { return lastError().c_str(); }

}  // namespace weft
