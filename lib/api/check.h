// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "comm/communicator.h"
#include "weft/weft.h"

// Arguments of the C API, checked before anything happens.
namespace weft {

// weftOpts_t with the communicator's defaults filled in.
struct Options {
  int timeoutMs = 0;
  std::string_view algorithm;
  bool reproducible = false;
  const char* label = nullptr;
};
Status readOptions(const Communicator& comm, const weftOpts_t* opts, Options* out);

// Config with the knobs and defaults filled in.
Status readConfig(const weftConfig_t* config, CommConfig* out);
// As readConfig, but what is not set comes from `parent`.
Status readConfig(const weftConfig_t* config, const CommConfig& parent, CommConfig* out);

Status checkType(weftDataType_t type);
Status checkRoot(const Communicator& comm, int root);
Status checkPeer(const Communicator& comm, int peer);
Status checkPointer(const void* pointer, const char* name);
// `op` built in, or this communicator's; the latter's factor goes to *scalar.
Status checkOp(const Communicator& comm, weftRedOp_t op, weftDataType_t type, RedOp* out,
               std::array<std::byte, 8>* scalar);
// count * blocks elements of this type must be addressable.
Status checkCount(std::uint64_t count, std::uint64_t blocks, weftDataType_t type);

// One buffer of a call on this rank. bytes == 0 if the rank does not use it.
struct Range {
  const void* start = nullptr;
  std::uint64_t bytes = 0;
};
// Not null where used; and either apart or exactly in place: send == recv + inPlace (a negative
// offset where recv lies in send). `mayCoincide`: whether the collective has an in-place form.
Status checkBuffers(Range send, Range recv, std::int64_t inPlace, bool mayCoincide);

}  // namespace weft
