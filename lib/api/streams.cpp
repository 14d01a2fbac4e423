// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <utility>

#include "api/check.h"
#include "api/entry.h"

namespace weft::api {
namespace {

// Runs a call on a stream; without one nothing is queued.
template <class Body>
weftResult_t onStream(weftStream_t handle, const Body& body) noexcept {
  return entry([&]() -> Status {
    if (handle == nullptr) return {};
    std::shared_ptr<engine::WorkStream> stream;
    WEFT_TRY(shareStream(handle, &stream));
    return body(*stream);
  });
}

Status waitEvent(weftStream_t streamHandle, weftEvent_t eventHandle) {
  std::shared_ptr<engine::WorkStream> stream;
  std::shared_ptr<engine::WorkEvent> event;
  WEFT_TRY(shareStream(streamHandle, &stream));
  WEFT_TRY(shareEvent(eventHandle, &event));
  if (const auto awaited = event->latest())
    stream->enqueue([awaited]() -> Status {
      awaited->wait();
      return {};
    });
  return {};
}

Status record(weftEvent_t eventHandle, weftStream_t streamHandle) {
  std::shared_ptr<engine::WorkEvent> event;
  WEFT_TRY(shareEvent(eventHandle, &event));
  std::shared_ptr<engine::WorkStream> stream;
  if (streamHandle != nullptr) WEFT_TRY(shareStream(streamHandle, &stream));
  const auto made = event->record();
  if (stream) {
    stream->enqueue([made]() -> Status {
      made->pass();
      return {};
    });
  } else {
    made->pass();  // everything without a stream is finished already
  }
  return {};
}

Status elapsed(float* ms, weftEvent_t startHandle, weftEvent_t endHandle) {
  std::shared_ptr<engine::WorkEvent> start, end;
  WEFT_TRY(checkPointer(ms, "ms"));
  WEFT_TRY(shareEvent(startHandle, &start));
  WEFT_TRY(shareEvent(endHandle, &end));
  engine::EventRecord::Clock::time_point from, to;
  const auto first = start->latest(), last = end->latest();
  if (!first || !last || !first->time(&from) || !last->time(&to))
    return Status::error(
        Code::InvalidUsage,
        "an event is not recorded or not reached yet; fix: weftEventSynchronize first");
  *ms = std::chrono::duration<float, std::milli>(to - from).count();
  return {};
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;
using weft::Status;
using weft::engine::WorkEvent;
using weft::engine::WorkStream;

weftResult_t weftStreamCreate(weftStream_t* stream) {
  return entry([&]() -> Status {
    WEFT_TRY(checkPointer(stream, "stream"));
    return publish(streamHandles(), std::make_shared<WorkStream>(), "streams", stream);
  });
}

weftResult_t weftStreamDestroy(weftStream_t stream) {
  return onStream(stream, [&](WorkStream& s) {
    streamHandles().remove(stream);
    return s.synchronize();
  });
}

weftResult_t weftStreamSynchronize(weftStream_t stream) {
  return onStream(stream, [](WorkStream& s) { return s.synchronize(); });
}

weftResult_t weftStreamQuery(weftStream_t stream) {
  weftResult_t answer = weftSuccess;
  const weftResult_t result = onStream(stream, [&](WorkStream& s) {
    Status first;
    if (!s.query(&first)) answer = weftInProgress;
    return first;
  });
  return result == weftSuccess ? answer : result;
}

weftResult_t weftStreamWaitEvent(weftStream_t stream, weftEvent_t event) {
  return entry([&] { return waitEvent(stream, event); });
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
    return publish(eventHandles(), std::make_shared<WorkEvent>(), "events", event);
  });
}

weftResult_t weftEventDestroy(weftEvent_t event) {
  return entry([&]() -> Status {
    if (event == nullptr) return {};
    std::shared_ptr<WorkEvent> found;
    WEFT_TRY(shareEvent(event, &found));
    eventHandles().remove(event);
    return {};
  });
}

weftResult_t weftEventRecord(weftEvent_t event, weftStream_t stream) {
  return entry([&] { return record(event, stream); });
}

weftResult_t weftEventSynchronize(weftEvent_t event) {
  return entry([&]() -> Status {
    std::shared_ptr<WorkEvent> found;
    WEFT_TRY(shareEvent(event, &found));
    if (const auto awaited = found->latest()) awaited->wait();
    return {};
  });
}

weftResult_t weftEventQuery(weftEvent_t event) {
  weftResult_t answer = weftSuccess;
  const weftResult_t result = entry([&]() -> Status {
    std::shared_ptr<WorkEvent> found;
    WEFT_TRY(shareEvent(event, &found));
    const auto work = found->latest();
    if (work && !work->passed()) answer = weftInProgress;
    return {};
  });
  return result == weftSuccess ? answer : result;
}

weftResult_t weftEventElapsedTime(float* ms, weftEvent_t start, weftEvent_t end) {
  return entry([&] { return elapsed(ms, start, end); });
}
