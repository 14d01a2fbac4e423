// SPDX-License-Identifier: Apache-2.0
// BERT's samples as NVIDIA's, DeepSpeed's and Habana's recipes keep them (create_pretraining_data.py), in HDF5 files that
// each have these datasets of integers, of N samples of S tokens with up to M of them masked:
//
//   input_ids [N, S] | input_mask [N, S], 1 and then 0 in the padding | segment_ids [N, S], 0 and 1
//   masked_lm_positions [N, M], which end at the first 0 | masked_lm_ids [N, M], what stood there
//   next_sentence_labels [N], 1 where the second part is random
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/batch.h"
#include "tools/train/megatron_order.h"

namespace weft::train {

// Samples of a file, in the order of the file.
struct ShardPiece {
  size_t file;
  uint64_t first, count;
  bool isWhole;
};

// As they are stored, row after row.
struct ShardSamples {
  ShardPiece piece{};
  size_t length = 0, mostMasked = 0;  // S and M
  std::vector<int32_t> inputIds = {};
  std::vector<int8_t> inputMask = {}, segmentIds = {};
  std::vector<int32_t> maskedPositions = {}, maskedIds = {};
  std::vector<int8_t> nextSentenceLabels = {};
};

// Whether a file is named as such a shard, by .hdf5 or .h5, or a folder has one in it.
bool isBertShards(const std::string& data);

// A file, or those in a folder whose name contains "training", or all if none does; sorted by name.
class BertShards {
 public:
  // Reads the shapes of all files. Throws Failure, with file and dataset, if one is not as above, or not of `length`
  // tokens a sample.
  BertShards(const std::string& data, size_t length);

  size_t files() const { return files_.size(); }
  uint64_t samples() const;
  // Of names and shapes.
  uint64_t fingerprint() const;

  // The files of a part of all samples; those at its ends may be in it with some of theirs.
  std::vector<ShardPiece> pieces(SequenceRange part) const;

  // Throws Failure, as append() does.
  ShardSamples read(const ShardPiece& piece) const;
  // Appends a sample. What does not hold together, or is not below `vocabulary`, is refused with file, dataset and sample.
  void append(const ShardSamples& samples, uint64_t sample, int64_t vocabulary, Batch& batch) const;

  const std::string& path(size_t file) const { return files_[file].path; }

 private:
  struct File {
    std::string path;
    uint64_t samples;
    size_t mostMasked;
  };

  size_t length_;
  std::vector<File> files_;
};

}  // namespace weft::train
