// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "transports/window.h"

namespace weft::watch {

inline bool isPublished(const transport::FirstError& firstError) {
  return firstError.state.load(std::memory_order_acquire) == transport::FirstError::Published;
}

// A lost link between living ranks: there may be another way.
inline bool isRecoverable(const Status& firstError) { return firstError.code() == Code::LinkLost; }

// The first error holds, but whoever recovers from a lost link must learn of anything worse.
inline bool overrules(const Status& cause, const Status& firstError) {
  return isRecoverable(firstError) && !isRecoverable(cause);
}

// OK as long as there is none.
inline Status statusOf(const transport::FirstError& firstError) {
  if (!isPublished(firstError)) return {};
  const std::size_t length = std::min<std::size_t>(firstError.length, transport::kFirstErrorBytes);
  Status first;
  (void)unpack({firstError.packed, length}, &first);
  return first;
}

// False if somebody else has published one, or is just doing it.
inline bool publishFirstError(const Status& cause, transport::FirstError* firstError) {
  const std::string packed = pack(cause, transport::kFirstErrorBytes);  // while nobody waits for it
  std::uint32_t none = transport::FirstError::None;
  if (!firstError->state.compare_exchange_strong(none, transport::FirstError::Writing,
                                                 std::memory_order_acq_rel))
    return false;
  std::memcpy(firstError->packed, packed.data(), packed.size());
  firstError->length = static_cast<std::uint32_t>(packed.size());
  firstError->state.store(transport::FirstError::Published, std::memory_order_release);
  return true;
}

}  // namespace weft::watch
