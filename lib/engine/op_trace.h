// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::engine {

// An op of a plan as this rank has run it. weftOpSpan_t of weft.h is the same.
struct OpSpan {
  std::uint64_t beginNs = 0, endNs = 0;  // CLOCK_MONOTONIC; its waiting counts
  std::uint64_t bytes = 0;
  std::uint32_t segment = 0;
  std::uint32_t op = 0;    // of the plan
  std::uint32_t lane = 0;  // segments in flight together are on different ones
  int kind = 0;            // plan::BoundOp::Kind
  int peer = 0;            // itself where no other rank takes part
};

// Keeps the ops of calls, in memory of the caller's, until that is full. One thread uses it.
class OpTrace {
 public:
  OpTrace() = default;
  OpTrace(OpSpan* spans, std::size_t room) : spans_(spans), room_(room) {}

  void add(const OpSpan& span) {
    if (made_ < room_) spans_[made_] = span;
    ++made_;
  }
  std::size_t made() const { return made_; }  // those that found no room, too

 private:
  OpSpan* spans_ = nullptr;
  std::size_t room_ = 0;
  std::size_t made_ = 0;
};

}  // namespace weft::engine
