// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "transports/segment.h"

namespace weft {

inline bool isPublished(const Verdict& verdict) {
  return verdict.state.load(std::memory_order_acquire) == Verdict::Published;
}

// A lost link between living ranks: there may be another way.
inline bool isMendable(const Status& verdict) { return verdict.code() == Code::LinkLost; }

// The first verdict holds, but who mends a lost link must learn of anything worse.
inline bool overrules(const Status& cause, const Status& verdict) {
  return isMendable(verdict) && !isMendable(cause);
}

// OK as long as there is none.
inline Status statusOf(const Verdict& verdict) {
  if (!isPublished(verdict)) return {};
  return Status::error(static_cast<Code>(verdict.code), verdict.text);
}

// False if somebody else has published one, or is just doing it.
inline bool publishVerdict(const Status& cause, Verdict* verdict) {
  std::uint32_t none = Verdict::None;
  if (!verdict->state.compare_exchange_strong(none, Verdict::Writing, std::memory_order_acq_rel))
    return false;
  verdict->code = static_cast<std::uint32_t>(cause.code());
  const std::size_t length = std::min(cause.text().size(), kVerdictText - 1);
  std::memcpy(verdict->text, cause.text().data(), length);
  verdict->text[length] = '\0';
  verdict->state.store(Verdict::Published, std::memory_order_release);
  return true;
}

}  // namespace weft
