// SPDX-License-Identifier: Apache-2.0
// BERT's samples: two runs of sentences, some tokens of them masked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tools/train/batch_source.h"
#include "tools/train/random.h"
#include "tools/train/vocabulary.h"

namespace weft::train {

// A sentence ends after . ! or ? before a space, or at an empty line. Spaces around it are not part
// of it, and none is empty.
std::vector<std::span<const uint8_t>> splitSentences(std::span<const uint8_t> text);

// A sample is [CLS] first [SEP] second [SEP]. It starts at a sentence, and an epoch starts at each
// sentence once, in a shuffled order, so a token is seen several times with other masks. The second
// run follows the first or, in half of the samples, starts at a random sentence (label 1), unless
// there is nothing to be learned of that: then it always follows, and all is one segment. One
// sample in ten is shorter than it could be.
class SentencePairs : public BatchSource {
 public:
  // Throws Failure if the text has too few sentences.
  SentencePairs(std::unique_ptr<Vocabulary> vocabulary, std::span<const uint8_t> text,
                size_t length, size_t samplesPerStep, uint64_t seed, bool nextSentence = true);

  Batch batch(uint64_t step, uint64_t first, size_t count) const override;
  uint64_t vocabularyFingerprint() const override { return vocabulary_->fingerprint(); }

  size_t sentences() const { return starts_.size() - 1; }

 private:
  using Run = std::span<const int32_t>;
  struct Pair {
    Run first, second;
    int64_t label;
  };

  void addSentence(std::span<const uint8_t> sentence);
  Pair choosePair(size_t sentence, Random& random) const;
  size_t endOfRun(size_t sentence, size_t tokens) const;
  Run run(size_t from, size_t to) const;
  void append(const Pair& pair, Random& random, Batch& batch) const;
  void mask(std::span<int64_t> tokens, std::span<int64_t> targets, size_t separator,
            Random& random) const;

  std::unique_ptr<Vocabulary> vocabulary_;
  std::vector<int32_t> tokens_;  // of the text
  std::vector<size_t> starts_;   // of sentences among them, and the end
  size_t length_;
  size_t samplesPerStep_;
  uint64_t seed_;
  bool nextSentence_;
};

}  // namespace weft::train
