// SPDX-License-Identifier: Apache-2.0
#include "tools/train/flat_layout.h"

namespace weft::train {

FlatLayout::FlatLayout(std::span<const size_t> sizes, size_t bucketSize) : slots_(sizes.size()) {
  for (size_t parameter = sizes.size(); parameter-- > 0;) {
    if (buckets_.empty() || buckets_.back().size >= bucketSize) buckets_.push_back({size_, 0, 0});
    const size_t padded = (sizes[parameter] + kAlign - 1) / kAlign * kAlign;
    slots_[parameter] = {size_, sizes[parameter], buckets_.size() - 1};
    buckets_.back().size += padded;
    ++buckets_.back().parameters;
    size_ += padded;
  }
}

}  // namespace weft::train
