// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace weft::sim {

// One invocation in flight, as the engine's.
struct Lane {
  std::uint64_t segment = 0;
  std::uint32_t next = 0;     // op to run
  std::uint32_t pending = 0;  // messages whose bytes have not all left
  bool active = false;
};

// Those of a rank, and what has come for them. There are places for a power of two of them, since who is
// asked for one with each event does not divide then; no more than `size` are in use.
class Lanes {
 public:
  void open(std::uint64_t size, std::uint64_t waits) {
    size_ = size;
    waits_ = waits;
    lanes_.resize(std::bit_ceil(size));
    shift_ = std::countr_zero(lanes_.size());
    arrived_.resize(lanes_.size() * waits, false);
  }
  std::uint64_t size() const { return size_; }
  std::uint32_t numberOf(std::uint64_t segment) const {
    return static_cast<std::uint32_t>(segment % size_);
  }

  Lane& of(std::uint64_t segment) { return lanes_[placeOf(segment)]; }
  const Lane& of(std::uint64_t segment) const { return lanes_[placeOf(segment)]; }
  auto begin() const { return lanes_.begin(); }
  auto end() const { return lanes_.end(); }

  void arrive(std::uint64_t segment, std::uint32_t wait) {
    arrived_[placeOf(segment) * waits_ + wait] = turnOf(segment);
  }
  bool hasArrived(std::uint64_t segment, std::uint32_t wait) const {
    return arrived_[placeOf(segment) * waits_ + wait] == turnOf(segment);
  }

 private:
  std::uint64_t placeOf(std::uint64_t segment) const { return segment & (lanes_.size() - 1); }
  bool turnOf(std::uint64_t segment) const { return (segment >> shift_ & 1) == 0; }

  std::uint64_t size_ = 0, waits_ = 0;
  int shift_ = 0;
  std::vector<Lane> lanes_;
  std::vector<bool> arrived_;  // by place and wait: in the last turn of this place that it came
};

}  // namespace weft::sim
