// SPDX-License-Identifier: Apache-2.0
// Dropout whose masks follow from numbers alone, so that ranks which share a batch or a layer, a training that resumes and
// a forward that is run again draw what one process would.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace weft::train {

// Where a block, or what is before the first one, drops.
enum class DropAt : uint32_t { kEmbedding, kAttentionWeights, kAttention, kMlp };

// Element e of a sample at a place is dropped where a word of Philox4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC'11) is below share 2^32: word e mod 4 of the counter (e / 4, 4 layer + place, sample, step) and the
// key of the seed's two halves. e counts what one process would have of the sample there, in the order of its memory.
class Dropout {
 public:
  Dropout() = default;  // drops nothing
  // Of a batch whose first sample is this one of all that the step has.
  Dropout(double share, uint64_t seed, uint64_t step, uint64_t firstSample)
      : share_(share), seed_(seed), step_(step), firstSample_(firstSample) {}

  // x, [samples, ...], with the share of its elements zero and the others divided by 1 - share. `first` is the element that
  // x begins with in each sample, where it is a part of them.
  at::Tensor operator()(const at::Tensor& x, size_t layer, DropAt place, int64_t first = 0) const;

 private:
  at::Tensor dropped(const at::Tensor& x, uint64_t place, int64_t first) const;

  double share_ = 0;
  uint64_t seed_ = 0, step_ = 0, firstSample_ = 0;
};

}  // namespace weft::train
