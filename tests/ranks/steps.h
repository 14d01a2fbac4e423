// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "world.h"

namespace weft::testing {

// The steps of one rank's test. Keeps the first that did not go as it should, which is the text
// that the rank's body returns; empty if all went well.
class Steps {
 public:
  // The call must succeed.
  bool ok(weftResult_t result, const std::string& what) { return gives(weftSuccess, result, what); }
  // The call must end with `wanted`.
  bool gives(weftResult_t wanted, weftResult_t result, const std::string& what) {
    if (result == wanted) return true;
    const std::string got = result == weftSuccess ? "success" : outcome(result, nullptr);
    return expect(false, what + ": " + got + " instead of " + weftGetErrorString(wanted));
  }
  bool expect(bool condition, const std::string& what) {
    if (!condition && failed_.empty()) failed_ = what;
    return condition;
  }
  const std::string& failed() const { return failed_; }

 private:
  std::string failed_;
};

// A second communicator of the same ranks, destroyed with this object.
class Twin {
 public:
  Twin(Steps& steps, const Rank& r, const weftConfig_t* config = nullptr) {
    steps.ok(weftCommSplit(r.comm, 0, r.rank, &comm_, config), "split off a twin");
  }
  ~Twin() { weftCommDestroy(comm_); }
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;
  operator weftComm_t() const { return comm_; }

 private:
  weftComm_t comm_ = nullptr;
};

class Stream {
 public:
  explicit Stream(Steps& steps) { steps.ok(weftStreamCreate(&stream_), "create a stream"); }
  ~Stream() { weftStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator weftStream_t() const { return stream_; }

 private:
  weftStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(Steps& steps) { steps.ok(weftEventCreate(&event_), "create an event"); }
  ~Event() { weftEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator weftEvent_t() const { return event_; }

 private:
  weftEvent_t event_ = nullptr;
};

// Holds a stream up until it is opened, or for so long at most.
class Gate {
 public:
  explicit Gate(double mostMs = 60000) : until_(nowMs() + mostMs) {}
  void holdUp(Steps& steps, weftStream_t stream) {
    steps.ok(weftStreamCallback(stream, &Gate::wait, this), "queue a gate");
  }
  void open() { open_ = true; }

 private:
  static void wait(void* self) {
    Gate& gate = *static_cast<Gate*>(self);
    while (!gate.open_ && nowMs() < gate.until_) sleepMs(0.1);
  }
  const double until_;
  std::atomic<bool> open_{false};
};

}  // namespace weft::testing
