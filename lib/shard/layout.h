// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace weft::shard {

// One tensor of the model, in order of registration (the order in which forward uses them).
struct ParameterSpec {
  std::string name;
  std::uint64_t elements = 0;
  bool frozen = false;                    // no gradient, no state; every rank keeps all of it
  bool noDecay = false;                   // weight decay does not apply (biases, norms)
  bool copy = false;                      // another part of the model has it, and counts it
  bool split = false;                     // parts have some elements each, by this name
  int tiedTo = -1;                        // >= 0: the same memory as this earlier parameter
  std::vector<std::uint64_t> shape = {};  // for exports; none: {elements}

  bool isTied() const { return tiedTo >= 0; }
  bool isTrained() const { return !frozen && !isTied(); }
};

// Where each parameter lies in one flat buffer, and how that is cut into buckets: a pure function
// of its arguments, equal on all ranks. All figures are in elements.
//
// Parameters lie in reverse order of registration, which is the order in which backward finishes
// their gradients, so that a bucket is complete early. Each starts on the grid of the optimizer's
// sums (kGrid, reduce/optimizer.h). A bucket is closed once it has `bucketElements`, and padded so
// that each of `ranks` ranks owns an equal part of it, on the grid: however the ranks are grouped,
// every shard is made of such parts. Frozen parameters follow the buckets.
class Layout {
 public:
  struct Slot {
    std::uint64_t offset = 0;  // in the flat buffer
    std::uint64_t elements = 0;
    std::uint64_t first = 0;      // logical index of its first element: independent of any cut
    std::uint32_t bucket = 0;     // kNoBucket for frozen ones
    std::uint32_t parameter = 0;  // itself, or what it is tied to
  };
  struct Bucket {
    std::uint64_t offset = 0;
    std::uint64_t elements = 0;             // padded
    std::vector<std::uint32_t> parameters;  // by offset; none twice
  };
  // A run of one parameter.
  struct Piece {
    std::uint32_t parameter = 0;
    std::uint64_t from = 0;    // in the parameter
    std::uint64_t offset = 0;  // in the flat buffer
    std::uint64_t elements = 0;
  };
  static constexpr std::uint32_t kNoBucket = ~0u;

  Layout() = default;
  // InvalidArgument names the parameter that cannot be.
  static Status make(std::vector<ParameterSpec> parameters, std::uint64_t bucketElements,
                     std::uint32_t ranks, Layout* out);

  std::span<const ParameterSpec> parameters() const { return parameters_; }
  const Slot& slot(std::uint32_t parameter) const { return slots_[parameter]; }
  std::span<const Bucket> buckets() const { return buckets_; }
  std::span<const std::uint32_t> frozen() const { return frozen_; }  // without what is tied
  std::uint64_t bucketedElements() const { return bucketed_; }       // all buckets
  std::uint64_t flatElements() const { return flat_; }               // and the frozen parameters
  std::uint64_t trainedElements() const { return trained_; }         // without any padding
  std::uint64_t logicalElements() const { return logical_; }

  // The runs of parameters in [offset, offset + elements) of the flat buffer, by offset.
  template <class Body>
  void visit(std::uint32_t bucket, std::uint64_t offset, std::uint64_t elements, Body&& body) const;
  // Which parameter holds this logical index; the padding after one counts as its own.
  std::uint32_t parameterAt(std::uint64_t logical) const;

  // Is it one of the parameters whose squares make the norm of the gradients here?
  bool counts(std::uint32_t parameter) const { return !parameters_[parameter].copy; }

  // A hash of name, length and kind, on which ranks must agree.
  std::uint64_t fingerprint(std::uint32_t parameter) const;
  std::uint64_t fingerprint() const;

 private:
  void place(std::uint64_t bucketElements, std::uint64_t grain);
  void closeBucket(std::uint64_t grain);

  std::vector<ParameterSpec> parameters_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> frozen_;
  std::uint64_t bucketed_ = 0, flat_ = 0, trained_ = 0, logical_ = 0;
};

template <class Body>
void Layout::visit(std::uint32_t bucket, std::uint64_t offset, std::uint64_t elements,
                   Body&& body) const {
  const std::uint64_t end = offset + elements;
  const std::vector<std::uint32_t>& all = buckets_[bucket].parameters;
  const auto isBefore = [&](std::uint32_t p) {
    return slots_[p].offset + slots_[p].elements <= offset;
  };
  for (auto p = std::ranges::partition_point(all, isBefore); p != all.end(); ++p) {
    const Slot& s = slots_[*p];
    if (s.offset >= end) break;
    const std::uint64_t from = std::max(s.offset, offset);
    const std::uint64_t to = std::min(s.offset + s.elements, end);
    body(Piece{*p, from - s.offset, from, to - from});
  }
}

}  // namespace weft::shard
