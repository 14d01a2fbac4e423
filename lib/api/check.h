// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "comm/communicator.h"
#include "weft/weft.h"

// Arguments of the C API, checked before anything happens.
namespace weft::api {

// weftOpts_t with the communicator's defaults filled in.
struct Options {
  int timeoutMs = 0;
  std::string_view algorithm;
  bool reproducible = false;
  const char* label = nullptr;
};
// What the caller asks for instead.
Status readGiven(const weftOpts_t& opts, Options* out);
inline Status readOptions(const comm::Communicator& comm, const weftOpts_t* opts, Options* out) {
  out->timeoutMs = comm.config().timeoutMs;
  out->reproducible = comm.config().reproducible;
  return opts == nullptr ? Status() : readGiven(*opts, out);
}

// Config with the knobs and defaults filled in.
Status readConfig(const weftConfig_t* config, comm::CommConfig* out);
// As readConfig, but what is not set comes from `parent`.
Status readConfig(const weftConfig_t* config, const comm::CommConfig& parent,
                  comm::CommConfig* out);

// One buffer of a call on this rank. bytes == 0 if the rank does not use it.
struct Range {
  const void* start = nullptr;
  std::uint64_t bytes = 0;
};

// The checks are inline, the sentences are not: a valid call pays for comparisons only.
namespace wrong {
Status type(weftDataType_t type);
Status rank(const comm::Communicator& comm, const char* what, int rank);
Status null(const char* name);
Status count(std::uint64_t count, std::uint64_t blocks, weftDataType_t type);
Status buffers(Range send, Range recv, bool mayCoincide);
Status bits(reduce::RedOp op, reduce::DType type);
}  // namespace wrong

inline Status checkType(weftDataType_t type) {
  return static_cast<unsigned>(type) < weftNumTypes ? Status() : wrong::type(type);
}

inline Status checkRank(const comm::Communicator& comm, const char* what, int rank) {
  return rank >= 0 && static_cast<std::uint32_t>(rank) < comm.ranks()
             ? Status()
             : wrong::rank(comm, what, rank);
}

inline Status checkPointer(const void* pointer, const char* name) {
  return pointer ? Status() : wrong::null(name);
}

// Stores a result where the caller wants it.
template <class T>
Status give(T* to, const char* name, T value) {
  WEFT_TRY(checkPointer(to, name));
  *to = value;
  return {};
}

// `op` built in, or this communicator's; the latter's factor goes to *scalar.
inline Status checkOp(const comm::Communicator& comm, weftRedOp_t op, weftDataType_t type,
                      reduce::RedOp* out, std::array<std::byte, 8>* scalar) {
  const bool builtIn = static_cast<unsigned>(op) < weftNumOps;
  *out = builtIn ? static_cast<reduce::RedOp>(op) : reduce::RedOp::PreMulSum;
  const auto dtype = static_cast<reduce::DType>(type);
  if (!builtIn) return comm.scalarOf(static_cast<int>(op) - weftNumOps, dtype, scalar);
  return reduce::isBitwise(*out) && reduce::isFloat(dtype) ? wrong::bits(*out, dtype) : Status();
}

// count * blocks elements of this type must be addressable; elements have at most 8 bytes.
inline Status checkCount(std::uint64_t count, std::uint64_t blocks, weftDataType_t type) {
  const bool small = count <= UINT32_MAX && blocks <= (std::uint64_t{1} << 28);
  return small ? Status() : wrong::count(count, blocks, type);
}

// Not null where used; and either apart or exactly in place: send == recv + inPlace (a negative
// offset where recv lies in send). `mayCoincide`: whether the collective has an in-place form.
[[gnu::always_inline]] inline bool areRight(Range send, Range recv, std::int64_t inPlace,
                                            bool mayCoincide) {
  const auto s = reinterpret_cast<std::uintptr_t>(send.start);
  const auto r = reinterpret_cast<std::uintptr_t>(recv.start);
  const bool sends = send.bytes != 0, receives = recv.bytes != 0;
  if ((sends && s == 0) || (receives && r == 0)) return false;
  if (!sends || !receives) return true;
  if (s + send.bytes < s || r + recv.bytes < r) return false;
  return s + send.bytes <= r || r + recv.bytes <= s ||
         (mayCoincide && s == r + static_cast<std::uintptr_t>(inPlace));
}

[[gnu::always_inline]] inline Status checkBuffers(Range send, Range recv, std::int64_t inPlace,
                                                  bool mayCoincide) {
  return areRight(send, recv, inPlace, mayCoincide) ? Status()
                                                    : wrong::buffers(send, recv, mayCoincide);
}

}  // namespace weft::api
