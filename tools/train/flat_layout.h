// SPDX-License-Identifier: Apache-2.0
// Where each parameter lies in one flat buffer, and how the buffer is cut into buckets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weft::train {

// Weights and gradients share one layout. Parameters lie in reverse order of registration, which is
// the order in which backward finishes their gradients, so a bucket is a run of the buffer that is
// complete early. All figures are in elements.
class FlatLayout {
 public:
  static constexpr size_t kAlign = 64;  // each parameter starts at a multiple; the gaps stay zero

  struct Slot {
    size_t offset;
    size_t size;
    size_t bucket;
  };
  struct Bucket {
    size_t offset;
    size_t size;
    size_t parameters;  // how many slots it holds
  };

  // `sizes` in order of registration. A bucket is closed as soon as it has `bucketSize` elements.
  FlatLayout(std::span<const size_t> sizes, size_t bucketSize);

  const Slot& slot(size_t parameter) const { return slots_[parameter]; }
  size_t parameters() const { return slots_.size(); }
  std::span<const Bucket> buckets() const { return buckets_; }
  size_t size() const { return size_; }

 private:
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  size_t size_ = 0;
};

}  // namespace weft::train
