// SPDX-License-Identifier: Apache-2.0
// Sentences that each have a class, in the format of GLUE's SST-2: a file of lines, of which the first is
// sentence<TAB>label and each other a sentence, a tab and the number of its class.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/train/batch_source.h"
#include "tools/train/vocabulary.h"

namespace weft::train {

struct LabelledSentence {
  std::string text;
  int64_t label;
};

// Reads such a file. Throws Failure, with file and line, if a line is something else, a label is not below
// `classes`, a text is not UTF-8, or there is no sentence.
std::vector<LabelledSentence> readLabelledSentences(const std::string& file, int64_t classes);

uint64_t fingerprintOf(const std::vector<LabelledSentence>& sentences);

// A sample is [CLS] sentence [SEP], cut to its length, and padding.
class LabelledSamples : public BatchSource {
 public:
  // Every sentence once an epoch, in a shuffled order, for training; or in their order, and
  // then padding of no class up to a whole number of steps, for an evaluation of all. Keeps a view of `sentences`.
  enum class Order { kShuffled, kAsTheyAre };
  LabelledSamples(std::unique_ptr<Vocabulary> vocabulary,
                  const std::vector<LabelledSentence>& sentences, size_t length,
                  size_t samplesPerStep, uint64_t seed, Order order);

  Batch batch(uint64_t step, uint64_t first, size_t count) const override;
  uint64_t vocabularyFingerprint() const override { return vocabulary_->fingerprint(); }
  uint64_t stepsOfAll() const override;

 private:
  void append(const LabelledSentence& sentence, Batch& batch) const;

  std::unique_ptr<Vocabulary> vocabulary_;
  const std::vector<LabelledSentence>& sentences_;
  size_t length_, samplesPerStep_;
  uint64_t seed_;
  Order order_;
};

}  // namespace weft::train
