// SPDX-License-Identifier: Apache-2.0
// Which tokens are which sample: the order of megatron-core's GPTDataset (gpt_dataset.py,
// helpers.cpp), token for token, so that a curve can be laid over one of Megatron's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace weft::train {

// numpy's RandomState(seed).shuffle of a one-dimensional array: Fisher and Yates with draws that are
// masked and rejected, from MT19937.
template <class T>
void shuffleAsNumpy(std::span<T> values, std::mt19937& random) {
  for (size_t i = values.size(); i-- > 1;) {
    uint32_t mask = static_cast<uint32_t>(i);
    for (const int shift : {1, 2, 4, 8, 16}) mask |= mask >> shift;
    uint32_t other = 0;
    do other = static_cast<uint32_t>(random()) & mask;
    while (other > i);
    std::swap(values[i], values[other]);
  }
}

// The part of so many sequences that Megatron's --split gives to its `which`-th share.
struct SequenceRange {
  size_t begin, end;
};
SequenceRange shareOf(size_t sequences, std::span<const double> split, size_t which);

// A sample is length + 1 tokens, the next one begins length further on; epochs follow each other in
// one stream of documents, each shuffled, and the samples are shuffled again.
class MegatronOrder {
 public:
  // Of documents of these lengths, all of which together need at least length + 1 tokens. `wanted`
  // samples at least: the epochs that this takes decide how they are shuffled.
  MegatronOrder(std::span<const int32_t> lengths, uint32_t seed, size_t length, uint64_t wanted);

  uint64_t samples() const { return shuffle_.size(); }

  // A run of one document.
  struct Piece {
    size_t document, from, count;
  };
  // Of sample i, as it is drawn.
  std::vector<Piece> sample(uint64_t i) const;

  // How it came about, for those who compare it with Megatron's.
  struct Entry {
    uint32_t position;  // in documents()
    int32_t offset;     // token
    bool operator==(const Entry&) const = default;
  };
  std::span<const int32_t> documents() const { return documents_; }
  std::span<const Entry> entries() const { return entries_; }
  std::span<const uint32_t> shuffle() const { return shuffle_; }

  // The entries of a given order of documents.
  static std::vector<Entry> walk(std::span<const int32_t> lengths,
                                 std::span<const int32_t> documents, size_t length,
                                 uint64_t samples);

 private:
  std::vector<int32_t> lengths_;
  std::vector<int32_t> documents_;  // epochs one after the other
  std::vector<Entry> entries_;      // one more than samples
  std::vector<uint32_t> shuffle_;
};

}  // namespace weft::train
