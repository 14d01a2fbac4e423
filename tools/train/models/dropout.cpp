// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

namespace weft::train {
namespace {

constexpr int64_t kWords = 4;      // that Philox gives at a time
constexpr int64_t kGrain = 16384;  // elements that are worth a thread

// Whether words first, first + 1, ... of a counter's are below the threshold.
void draw(uint64_t key, uint64_t sample, uint64_t place, uint64_t first, uint32_t threshold,
          bool* to, int64_t count) {
  at::Philox4_32 words(key, sample, place << 32 | first / kWords);
  for (uint64_t skipped = 0; skipped < first % kWords; ++skipped) words();
  for (int64_t i = 0; i < count; ++i) to[i] = words() < threshold;
}

}  // namespace

at::Tensor Dropout::operator()(const at::Tensor& x, size_t layer, DropAt place,
                               int64_t first) const {
  if (share_ == 0) return x;
  return (x / (1 - share_))
      .masked_fill(dropped(x, 4 * layer + static_cast<uint64_t>(place), first), 0);
}

at::Tensor Dropout::dropped(const at::Tensor& x, uint64_t place, int64_t first) const {
  const at::Tensor mask = at::empty(x.sizes(), at::kBool);
  const auto threshold = static_cast<uint32_t>(std::llround(share_ * 0x1p32));
  const int64_t ofSample = x.numel() / x.size(0);
  bool* const to = mask.data_ptr<bool>();
  at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t sample = begin / ofSample, at = begin % ofSample;
      const int64_t count = std::min(end - begin, ofSample - at);
      draw(seed_, step_ << 32 | (firstSample_ + static_cast<uint64_t>(sample)), place,
           static_cast<uint64_t>(first + at), threshold, to + begin, count);
      begin += count;
    }
  });
  return mask;
}

}  // namespace weft::train
