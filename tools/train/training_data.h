// SPDX-License-Identifier: Apache-2.0
// What is learned from: a text, the tokens of a Megatron dataset, BERT's shards or sentences with labels; and which part of it is kept for
// validation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/train/batch_source.h"
#include "tools/train/bert_shards.h"
#include "tools/train/labelled_sentences.h"
#include "tools/train/megatron_data.h"
#include "tools/train/options.h"

namespace weft::train {

class TrainingData {
 public:
  // Reads what `options`, which must outlive this, name. Throws Failure.
  explicit TrainingData(const Options& options);

  uint64_t fingerprint() const;
  std::string description() const;  // for the head of a report
  // Of the samples, where --readers and --batch decide it, in words; else empty.
  std::string order(size_t samplesPerStep) const;

  // `samplesPerStep` is the global batch. Keeps a view of this. Throws Failure if there is too little.
  std::unique_ptr<BatchSource> training(size_t samplesPerStep) const;
  // Of the part kept for validation.
  std::unique_ptr<BatchSource> validation(size_t samplesPerStep) const;

 private:
  void readSentences();
  std::unique_ptr<BatchSource> source(size_t share, size_t samplesPerStep, uint64_t samples) const;
  size_t readers(size_t samplesPerStep) const;
  uint64_t units() const;  // that --split gives shares of

  const Options& options_;
  std::vector<uint8_t> text_;
  std::unique_ptr<MegatronData> tokens_;
  std::unique_ptr<BertShards> shards_;
  std::vector<LabelledSentence> sentences_, validSentences_;
};

}  // namespace weft::train
