// SPDX-License-Identifier: Apache-2.0
// Which samples a rank's micro-batches have, and the order in which those of all ranks count.
#include <algorithm>
#include <bit>
#include <vector>

#include "tools/train/trainer.h"

namespace weft::train {

// Micro-batch m of the step is samples m * R .. (m + 1) * R of R = ranks * batch, and each rank has
// its run of `batch` among them, so any split of the same global batch gives the same gradients.
uint64_t Trainer::firstSample(int64_t micro) const {
  const auto rank = static_cast<uint64_t>(groups_.data().rank());
  return microBatch(static_cast<uint64_t>(micro), rank) * static_cast<uint64_t>(options_.batch);
}

// Which of the micro-batches of all ranks a rank's m-th is: in reproducible runs as shard.h asks.
uint64_t Trainer::microBatch(uint64_t m, uint64_t rank) const {
  const auto ranks = static_cast<uint64_t>(dataRanks()),
             together = static_cast<uint64_t>(together_);
  const uint64_t ofRank = static_cast<uint64_t>(options_.accumulate) / together;
  const uint64_t run = options_.reproducible ? together << std::countr_zero(ofRank) : 1;
  return (m / run * ranks + rank) * run + m % run;
}

// Micro-batch i of this rank: of steps 0 to `steps` - 1, over and over.
std::function<Batch(uint64_t)> Trainer::batchesOf(const BatchSource& source, uint64_t steps) const {
  std::vector<uint64_t> first;
  for (int64_t micro = 0; micro < options_.accumulate; ++micro) first.push_back(firstSample(micro));
  return [&source, steps, first, count = static_cast<size_t>(options_.batch)](uint64_t i) {
    const uint64_t step = i / first.size() % steps, start = first[i % first.size()];
    Batch batch = source.batch(step, start, count);
    batch.step = step;
    batch.first = start;
    return batch;
  };
}

// In the order of the micro-batches, whoever had them: each rank's losses begin `stride` further on.
// The last stage has them, and all of a tensor group the same.
std::vector<const double*> Trainer::microsInOrder(const std::vector<double>& byRank, size_t stride,
                                                  size_t ofMicro) const {
  const auto micros = static_cast<size_t>(options_.accumulate);
  std::vector<const double*> inOrder(static_cast<size_t>(dataRanks()) * micros);
  for (size_t i = 0; i < inOrder.size(); ++i) {
    const auto batch = static_cast<int64_t>(i / micros);
    const auto rank = static_cast<size_t>(groups_.rankOf(groups_.part().count() - 1, batch));
    inOrder[microBatch(i % micros, i / micros)] = &byRank[rank * stride + i % micros * ofMicro];
  }
  return inOrder;
}

double Trainer::meanInOrder(const std::vector<double>& byRank, size_t stride) const {
  const std::vector<const double*> inOrder = microsInOrder(byRank, stride, 1);
  double sum = 0;
  for (const double* const each : inOrder) sum += *each;
  return sum / static_cast<double>(inOrder.size());
}

// Of the last words of all ranks, which have `stride` each.
double Trainer::mostOfLast(const std::vector<double>& byRank, size_t stride) {
  double most = 0;
  for (size_t i = stride - 1; i < byRank.size(); i += stride) most = std::max(most, byRank[i]);
  return most;
}

}  // namespace weft::train
