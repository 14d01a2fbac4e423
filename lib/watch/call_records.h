// SPDX-License-Identifier: Apache-2.0
// What a control page says of its rank's calls.
#pragma once

#include <cstdint>
#include <string>

#include "plan/call.h"
#include "transports/window.h"
#include "watch/remote_ranks.h"

namespace weft::watch {

inline constexpr const char* kUnknownCall = "another call";

inline std::string wordsOf(const transport::CallRecord& record) {
  return record.what.load(std::memory_order_acquire) == kUnknownWords ? kUnknownCall
                                                                      : plan::describe(record);
}

// The peer's record of call `seq`, if it has made that call. `words` may be null.
inline bool readCall(const transport::ControlPage& page, std::uint64_t seq,
                     std::uint64_t* fingerprint, std::string* words) {
  const transport::CallRecord& record = page.calls[seq % transport::kCallRecords];
  if (record.seq.load(std::memory_order_acquire) != seq) return false;
  *fingerprint = record.fingerprint.load(std::memory_order_acquire);
  if (words) *words = wordsOf(record);
  return record.seq.load(std::memory_order_relaxed) == seq;
}

}  // namespace weft::watch
