// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "engine/pairs.h"
#include "plan/extents.h"
#include "transports/shm/moved.h"
#include "transports/transport.h"

namespace weft::comm {

// Registered buffers of one call. It runs on their places in the heap, like a call on memory of
// weftMemAlloc, so that plans need know nothing of registration.
class MovedBuffers {
 public:
  // Nothing is looked for where the ranks do not share memory, or share all of it.
  explicit MovedBuffers(const transport::Transport& transport);

  // Before the call.
  void use(const plan::Extents& extents, engine::Launch* launch);
  // The same messages; in `room` if any of them changes.
  std::span<const engine::PairOp> use(std::span<const engine::PairOp> pairs,
                                      std::vector<engine::PairOp>* room);
  // After it: the ends of what was received.
  void finish() const;

 private:
  shm::MovedRanges* ranges_ = nullptr;
  std::optional<shm::HeapAlias> out_;
  std::vector<shm::HeapAlias> received_;  // messages
};

}  // namespace weft::comm
