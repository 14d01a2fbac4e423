// SPDX-License-Identifier: Apache-2.0
//
// weft for C++17: thin RAII over weft.h, header-only. Every class owns one handle, moves but does
// not copy, and converts to the handle, so the C API is never out of reach. A failed call throws
// weft::Error; destructors never throw. Semantics, units and thread-safety are those of weft.h.
//
//   auto comm = weft::Communicator::fromEnvironment();
//   std::vector<float> gradients = ...;
//   comm.allReduce(gradients.data(), gradients.size(), weftAvg);
#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weft {

// weftErrorInfo_t with strings of its own.
struct ErrorInfo {
  int rank = -1;
  int pid = 0;
  int port = 0;
  std::string host{}, device{}, call{}, message{}, fix{};
  std::vector<int> missingRanks{};
  std::string variable{};
};

// Of the error whose line weftGetLastError(comm) returns.
inline ErrorInfo lastErrorInfo(weftComm_t comm = nullptr) {
  weftErrorInfo_t c = WEFT_ERROR_INFO_INITIALIZER;
  static_cast<void>(weftGetLastErrorInfo(comm, &c));
  return {c.rank,    c.pid,    c.port,
          c.host,    c.device, c.call,
          c.message, c.fix,    {c.missingRanks, c.missingRanks + c.missingCount},
          c.variable};
}

// A failed call: the result code, as what() the line that says who, what, where and the fix, and
// the same as data.
class Error : public std::runtime_error {
 public:
  Error(weftResult_t result, const std::string& text, ErrorInfo info)
      : std::runtime_error(text), result_(result), info_(std::move(info)) {}
  Error(weftResult_t result, const std::string& text) : Error(result, text, {}) {
    info_.message = text;
  }
  weftResult_t result() const noexcept { return result_; }
  const ErrorInfo& info() const noexcept { return info_; }

 private:
  weftResult_t result_;
  ErrorInfo info_;
};

// Throws unless `result` is success. `comm` is the communicator of the call, if it had one.
inline void check(weftResult_t result, weftComm_t comm = nullptr) {
  if (result == weftSuccess) return;
  const std::string detail = weftGetLastError(comm);
  if (detail.empty()) throw Error(result, weftGetErrorString(result));
  throw Error(result, detail, lastErrorInfo(comm));
}

// Storage of the 16-bit floating-point types, which C++17 has no types for.
struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

// kDataType<T> is the weftDataType_t of a C++ element type.
template <class T>
struct DataType;  // no definition: T is not an element type of weft
template <weftDataType_t type>
struct DataTypeIs {
  static constexpr weftDataType_t value = type;
};
template <>
struct DataType<char> : DataTypeIs<weftChar> {};
template <>
struct DataType<std::int8_t> : DataTypeIs<weftInt8> {};
template <>
struct DataType<std::uint8_t> : DataTypeIs<weftUint8> {};
template <>
struct DataType<std::int32_t> : DataTypeIs<weftInt32> {};
template <>
struct DataType<std::uint32_t> : DataTypeIs<weftUint32> {};
template <>
struct DataType<std::int64_t> : DataTypeIs<weftInt64> {};
template <>
struct DataType<std::uint64_t> : DataTypeIs<weftUint64> {};
template <>
struct DataType<Float16> : DataTypeIs<weftFloat16> {};
template <>
struct DataType<Bfloat16> : DataTypeIs<weftBfloat16> {};
template <>
struct DataType<float> : DataTypeIs<weftFloat32> {};
template <>
struct DataType<double> : DataTypeIs<weftFloat64> {};
template <class T>
inline constexpr weftDataType_t kDataType = DataType<T>::value;

inline weftConfig_t defaultConfig() { return WEFT_CONFIG_INITIALIZER; }
inline weftOpts_t defaultOptions() { return WEFT_OPTS_INITIALIZER; }

// Owns one handle, which `destroy` frees.
template <class T, weftResult_t (*destroy)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) noexcept : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) destroy(handle_);
  }
  operator T() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  T handle_ = nullptr;
};

class Event : public Handle<weftEvent_t, weftEventDestroy> {
 public:
  Event() : Handle(create()) {}
  void record(weftStream_t stream) { check(weftEventRecord(*this, stream)); }
  void synchronize() { check(weftEventSynchronize(*this)); }
  // Milliseconds from `start` to this event; both must be complete.
  float since(const Event& start) const {
    float ms = 0;
    check(weftEventElapsedTime(&ms, start, *this));
    return ms;
  }

 private:
  static weftEvent_t create() {
    weftEvent_t event = nullptr;
    check(weftEventCreate(&event));
    return event;
  }
};

class Stream : public Handle<weftStream_t, weftStreamDestroy> {
 public:
  Stream() : Handle(create()) {}
  void synchronize() { check(weftStreamSynchronize(*this)); }
  void wait(const Event& event) { check(weftStreamWaitEvent(*this, event)); }
  void callback(void (*function)(void*), void* argument) {
    check(weftStreamCallback(*this, function, argument));
  }

 private:
  static weftStream_t create() {
    weftStream_t stream = nullptr;
    check(weftStreamCreate(&stream));
    return stream;
  }
};

// Calls between construction and end() start together. Call end(), which throws the first error;
// the destructor ends the group as well, silently, for when an exception passes through.
class Group {
 public:
  Group() { check(weftGroupStart()); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (open_) static_cast<void>(weftGroupEnd());
  }
  void end() {
    open_ = false;
    check(weftGroupEnd());
  }

 private:
  bool open_ = true;
};

// Where and how an operation runs: on the caller's thread with all defaults, unless said otherwise.
struct On {
  weftStream_t stream = nullptr;
  const weftOpts_t* options = nullptr;
};

class Communicator : public Handle<weftComm_t, weftCommDestroy> {
 public:
  Communicator() = default;
  explicit Communicator(weftComm_t comm) noexcept : Handle(comm) {}

  // Creation: who am I, from the launcher; one rank by unique id; all ranks of this process.
  static Communicator fromEnvironment(const weftConfig_t* config = nullptr) {
    weftComm_t comm = nullptr;
    check(weftCommInitFromEnv(&comm, config));
    return Communicator(comm);
  }
  static Communicator join(const weftUniqueId& id, int ranks, int rank,
                           const weftConfig_t* config = nullptr) {
    weftComm_t comm = nullptr;
    check(weftCommInitRankConfig(&comm, ranks, id, rank, config));
    return Communicator(comm);
  }
  static std::vector<Communicator> all(int ranks, const weftConfig_t* config = nullptr) {
    std::vector<weftComm_t> comms(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
    check(weftCommInitAllConfig(comms.data(), ranks, nullptr, config));
    return std::vector<Communicator>(comms.begin(), comms.end());
  }
  // Null if color is WEFT_SPLIT_NOCOLOR.
  Communicator split(int color, int key, const weftConfig_t* config = nullptr) const {
    weftComm_t comm = nullptr;
    ok(weftCommSplit(*this, color, key, &comm, config));
    return Communicator(comm);
  }

  int rank() const { return query(weftCommUserRank); }
  int size() const { return query(weftCommCount); }
  weftMemStats_t memory() const {
    weftMemStats_t stats{};
    stats.size = sizeof(stats);
    ok(weftCommMemStats(*this, &stats));
    return stats;
  }
  weftResult_t asyncError() const {
    weftResult_t firstError = weftSuccess;
    ok(weftCommGetAsyncError(*this, &firstError));
    return firstError;
  }
  void finalize() { ok(weftCommFinalize(*this)); }
  void abort() noexcept { static_cast<void>(weftCommAbort(*this)); }

  // Collectives. Counts are in elements; the in-place forms are those of weft.h.
  template <class T>
  void allReduce(const T* send, T* recv, std::size_t count, weftRedOp_t op = weftSum, On on = {}) {
    ok(weftAllReduce(send, recv, count, kDataType<T>, op, *this, on.stream, on.options));
  }
  template <class T>
  void allReduce(T* inPlace, std::size_t count, weftRedOp_t op = weftSum, On on = {}) {
    allReduce(inPlace, inPlace, count, op, on);
  }
  template <class T>
  void allGather(const T* send, T* recv, std::size_t sendCount, On on = {}) {
    ok(weftAllGather(send, recv, sendCount, kDataType<T>, *this, on.stream, on.options));
  }
  template <class T>
  void reduceScatter(const T* send, T* recv, std::size_t recvCount, weftRedOp_t op = weftSum,
                     On on = {}) {
    ok(weftReduceScatter(send, recv, recvCount, kDataType<T>, op, *this, on.stream, on.options));
  }
  // counts and displs have one entry a rank; displs == nullptr means packed.
  template <class T>
  void allGatherV(const T* send, T* recv, const std::size_t* counts,
                  const std::size_t* displs = nullptr, On on = {}) {
    ok(weftAllGatherV(send, recv, counts, displs, kDataType<T>, *this, on.stream, on.options));
  }
  template <class T>
  void reduceScatterV(const T* send, T* recv, const std::size_t* counts,
                      const std::size_t* displs = nullptr, weftRedOp_t op = weftSum, On on = {}) {
    ok(weftReduceScatterV(send, recv, counts, displs, kDataType<T>, op, *this, on.stream,
                          on.options));
  }
  // Each rank passes its own counts.
  template <class T>
  void gatherV(const T* send, std::size_t sendCount, T* recv, const std::size_t* recvCounts,
               const std::size_t* displs = nullptr, int root = 0, On on = {}) {
    ok(weftGatherV(send, sendCount, recv, recvCounts, displs, kDataType<T>, root, *this, on.stream,
                   on.options));
  }
  template <class T>
  void scatterV(const T* send, const std::size_t* sendCounts, T* recv, std::size_t recvCount,
                const std::size_t* displs = nullptr, int root = 0, On on = {}) {
    ok(weftScatterV(send, sendCounts, displs, recv, recvCount, kDataType<T>, root, *this, on.stream,
                    on.options));
  }
  template <class T>
  void allToAllV(const T* send, const std::size_t* sendCounts, T* recv,
                 const std::size_t* recvCounts, const std::size_t* sendDispls = nullptr,
                 const std::size_t* recvDispls = nullptr, On on = {}) {
    ok(weftAlltoAllV(send, sendCounts, sendDispls, recv, recvCounts, recvDispls, kDataType<T>,
                     *this, on.stream, on.options));
  }
  template <class T>
  void broadcast(const T* send, T* recv, std::size_t count, int root = 0, On on = {}) {
    ok(weftBroadcast(send, recv, count, kDataType<T>, root, *this, on.stream, on.options));
  }
  template <class T>
  void reduce(const T* send, T* recv, std::size_t count, weftRedOp_t op = weftSum, int root = 0,
              On on = {}) {
    ok(weftReduce(send, recv, count, kDataType<T>, op, root, *this, on.stream, on.options));
  }
  template <class T>
  void gather(const T* send, T* recv, std::size_t count, int root = 0, On on = {}) {
    ok(weftGather(send, recv, count, kDataType<T>, root, *this, on.stream, on.options));
  }
  template <class T>
  void scatter(const T* send, T* recv, std::size_t count, int root = 0, On on = {}) {
    ok(weftScatter(send, recv, count, kDataType<T>, root, *this, on.stream, on.options));
  }
  template <class T>
  void allToAll(const T* send, T* recv, std::size_t count, On on = {}) {
    ok(weftAlltoAll(send, recv, count, kDataType<T>, *this, on.stream, on.options));
  }
  template <class T>
  void send(const T* data, std::size_t count, int peer, On on = {}) {
    ok(weftSend(data, count, kDataType<T>, peer, *this, on.stream, on.options));
  }
  template <class T>
  void recv(T* data, std::size_t count, int peer, On on = {}) {
    ok(weftRecv(data, count, kDataType<T>, peer, *this, on.stream, on.options));
  }
  void barrier(On on = {}) { ok(weftBarrier(*this, on.stream, on.options)); }

 private:
  void ok(weftResult_t result) const { check(result, *this); }
  int query(weftResult_t (*get)(weftComm_t, int*)) const {
    int value = 0;
    ok(get(*this, &value));
    return value;
  }
};

}  // namespace weft
