// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "api/check.h"
#include "api/entry.h"
#include "base/log.h"
#include "transports/shm/heap.h"

namespace weft::api {
namespace {

// What weftCommRegister was given.
struct Registration {
  const comm::Communicator* owner = nullptr;
  std::optional<std::uintptr_t> moved;  // of shm::MovedRanges
};
struct Registrations {
  ForkSafeMutex mutex;
  std::map<std::uintptr_t, Registration> all;  // by handle
  std::uintptr_t next = 1;
};
Registrations& registrations() { return processWide<Registrations>(); }

bool isOfHeap(const void* memory) {
  const shm::Heap* const heap = shm::Heap::existing();
  return (heap != nullptr && heap->contains(memory)) || shm::Heap::isParents(memory);
}

// Where that gains something. What cannot be moved is as usable as any memory.
Status moveIntoHeap(const comm::Communicator& comm, void* memory, std::size_t size,
                    std::optional<std::uintptr_t>* moved) {
  shm::Heap* const heap = shm::Heap::existing();
  if (!comm.sharesHeaps() || heap == nullptr || isOfHeap(memory)) return {};
  std::uintptr_t key = 0;
  const Status status = heap->moved().add(static_cast<std::byte*>(memory), size, &key);
  if (status.ok()) *moved = key;
  if (status.code() == Code::InvalidArgument) return status;
  if (!status.ok())
    logInfo("weftCommRegister leaves ", size, " bytes at ",
            shm::addressText(reinterpret_cast<std::uintptr_t>(memory)),
            " where they are, and they are used as any memory: ", status.text());
  return {};
}

Status enlist(const comm::Communicator& comm, void* buff, std::size_t size, void** handle) {
  WEFT_TRY(checkPointer(buff, "buff"));
  WEFT_TRY(checkPointer(handle, "handle"));
  if (size == 0) return invalid("size is 0");
  if (reinterpret_cast<std::uintptr_t>(buff) + size < size)
    return invalid(text("size is ", size, ", beyond the end of all addresses"));
  Registration made{&comm, {}};
  WEFT_TRY(moveIntoHeap(comm, buff, size, &made.moved));
  Registrations& known = registrations();
  const std::lock_guard lock(known.mutex);
  known.all[known.next] = made;
  *handle = reinterpret_cast<void*>(known.next++);
  return {};
}

// A child has left what was moved to its parent.
Status moveBack(const Registration& registration) {
  shm::Heap* const heap = shm::Heap::existing();
  return registration.moved && heap ? heap->moved().drop(*registration.moved) : Status();
}

Status discharge(const comm::Communicator& comm, void* handle) {
  Registrations& known = registrations();
  const std::lock_guard lock(known.mutex);
  const auto found = known.all.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == known.all.end() || found->second.owner != &comm)
    return invalid(
        "handle did not come from weftCommRegister on this communicator, or is deregistered "
        "already");
  Status moved = moveBack(found->second);
  if (moved.code() != Code::OutOfMemory) known.all.erase(found);
  return moved;
}

}  // namespace

void dropRegistrations(const comm::Communicator& comm) {
  Registrations& known = registrations();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [&](const auto& entry) {
    if (entry.second.owner != &comm) return false;
    if (const Status moved = moveBack(entry.second); !moved.ok())
      logWarn("a communicator ended with memory registered: ", moved.text());
    return true;
  });
}

}  // namespace weft::api

using namespace weft::api;
using weft::comm::Communicator;

weftResult_t weftCommRegister(weftComm_t comm, void* buff, size_t size, void** handle) {
  return onComm(comm, [&](Communicator& c) { return enlist(c, buff, size, handle); });
}
weftResult_t weftCommDeregister(weftComm_t comm, void* handle) {
  return onComm(comm, [&](Communicator& c) { return discharge(c, handle); });
}
