// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <utility>

#include "api/check.h"
#include "api/entry.h"

namespace weft {
namespace {

template <class Table, class Handle, class Object>
Status publish(Table& table, std::shared_ptr<Object> made, const char* what, Handle* out) {
  const std::uintptr_t handle = table.add(std::move(made));
  if (handle == 0)
    return Status::error(Code::InvalidUsage, text("this process has ", Table::kCapacity, " ", what,
                                                  " already; fix: destroy some"));
  *out = reinterpret_cast<Handle>(handle);
  return {};
}

Status waitEvent(weftStream_t streamHandle, weftEvent_t eventHandle) {
  std::shared_ptr<WorkStream> stream;
  std::shared_ptr<WorkEvent> event;
  WEFT_TRY(shareStream(streamHandle, &stream));
  WEFT_TRY(shareEvent(eventHandle, &event));
  const std::uint64_t ticket = event->latest();
  stream->enqueue([event, ticket]() -> Status {
    event->wait(ticket);
    return {};
  });
  return {};
}

Status record(weftEvent_t eventHandle, weftStream_t streamHandle) {
  std::shared_ptr<WorkEvent> event;
  WEFT_TRY(shareEvent(eventHandle, &event));
  const std::uint64_t ticket = event->beginRecord();
  if (streamHandle == nullptr) {  // everything without a stream is finished already
    event->endRecord(ticket);
    return {};
  }
  std::shared_ptr<WorkStream> stream;
  WEFT_TRY(shareStream(streamHandle, &stream));
  stream->enqueue([event, ticket]() -> Status {
    event->endRecord(ticket);
    return {};
  });
  return {};
}

Status elapsed(float* ms, weftEvent_t startHandle, weftEvent_t endHandle) {
  std::shared_ptr<WorkEvent> start, end;
  WEFT_TRY(checkPointer(ms, "ms"));
  WEFT_TRY(shareEvent(startHandle, &start));
  WEFT_TRY(shareEvent(endHandle, &end));
  WorkEvent::Clock::time_point from, to;
  if (!start->time(&from) || !end->time(&to))
    return Status::error(
        Code::InvalidUsage,
        "an event is not recorded or not reached yet; fix: weftEventSynchronize first");
  *ms = std::chrono::duration<float, std::milli>(to - from).count();
  return {};
}

}  // namespace
}  // namespace weft

using weft::checkPointer;
using weft::entry;
using weft::shareEvent;
using weft::shareStream;
using weft::Status;
using weft::WorkEvent;
using weft::WorkStream;

weftResult_t weftStreamCreate(weftStream_t* stream) {
  return entry([&]() -> Status {
    WEFT_TRY(checkPointer(stream, "stream"));
    return weft::publish(weft::streamHandles(), std::make_shared<WorkStream>(), "streams", stream);
  });
}

weftResult_t weftStreamDestroy(weftStream_t stream) {
  return entry([&]() -> Status {
    if (stream == nullptr) return {};
    std::shared_ptr<WorkStream> found;
    WEFT_TRY(shareStream(stream, &found));
    weft::streamHandles().remove(stream);
    return found->synchronize();
  });
}

weftResult_t weftStreamSynchronize(weftStream_t stream) {
  return entry([&]() -> Status {
    if (stream == nullptr) return {};
    std::shared_ptr<WorkStream> found;
    WEFT_TRY(shareStream(stream, &found));
    return found->synchronize();
  });
}

weftResult_t weftStreamQuery(weftStream_t stream) {
  weftResult_t answer = weftSuccess;
  const weftResult_t result = entry([&]() -> Status {
    if (stream == nullptr) return {};
    std::shared_ptr<WorkStream> found;
    WEFT_TRY(shareStream(stream, &found));
    Status first;
    if (!found->query(&first)) answer = weftInProgress;
    return first;
  });
  return result == weftSuccess ? answer : result;
}

weftResult_t weftStreamWaitEvent(weftStream_t stream, weftEvent_t event) {
  return entry([&] { return weft::waitEvent(stream, event); });
}

weftResult_t weftStreamCallback(weftStream_t stream, void (*fn)(void*), void* arg) {
  return entry([&]() -> Status {
    if (fn == nullptr) return weft::invalid("fn is NULL");
    std::shared_ptr<WorkStream> found;
    WEFT_TRY(shareStream(stream, &found));
    found->enqueue([fn, arg]() -> Status {
      fn(arg);
      return {};
    });
    return {};
  });
}

weftResult_t weftEventCreate(weftEvent_t* event) {
  return entry([&]() -> Status {
    WEFT_TRY(checkPointer(event, "event"));
    return weft::publish(weft::eventHandles(), std::make_shared<WorkEvent>(), "events", event);
  });
}

weftResult_t weftEventDestroy(weftEvent_t event) {
  return entry([&]() -> Status {
    if (event == nullptr) return {};
    std::shared_ptr<WorkEvent> found;
    WEFT_TRY(shareEvent(event, &found));
    weft::eventHandles().remove(event);
    return {};
  });
}

weftResult_t weftEventRecord(weftEvent_t event, weftStream_t stream) {
  return entry([&] { return weft::record(event, stream); });
}

weftResult_t weftEventSynchronize(weftEvent_t event) {
  return entry([&]() -> Status {
    std::shared_ptr<WorkEvent> found;
    WEFT_TRY(shareEvent(event, &found));
    found->wait(found->latest());
    return {};
  });
}

weftResult_t weftEventQuery(weftEvent_t event) {
  weftResult_t answer = weftSuccess;
  const weftResult_t result = entry([&]() -> Status {
    std::shared_ptr<WorkEvent> found;
    WEFT_TRY(shareEvent(event, &found));
    if (!found->passed(found->latest())) answer = weftInProgress;
    return {};
  });
  return result == weftSuccess ? answer : result;
}

weftResult_t weftEventElapsedTime(float* ms, weftEvent_t start, weftEvent_t end) {
  return entry([&] { return weft::elapsed(ms, start, end); });
}
