// SPDX-License-Identifier: Apache-2.0
#include "tools/train/batch_source.h"

#include <fmt/format.h>

#include "tools/train/failure.h"
#include "tools/train/sampler.h"
#include "tools/train/sentence_pairs.h"

namespace weft::train {
namespace {

// For models that predict the next byte.
class NextBytes : public BatchSource {
 public:
  NextBytes(const Options& options, std::span<const uint8_t> text, size_t samplesPerStep)
      : length_(static_cast<size_t>(options.length)),
        sampler_(text, length_, samplesPerStep, options.seed) {}

  Batch batch(uint64_t step, uint64_t first, size_t count) const override {
    Batch batch;
    batch.samples = count;
    batch.length = length_;
    for (uint64_t g = first; g < first + count; ++g) {
      const std::span<const uint8_t> window = sampler_.sample(step, g);
      batch.tokens.insert(batch.tokens.end(), window.begin(), window.end() - 1);
      batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
    }
    return batch;
  }

 private:
  size_t length_;
  Sampler sampler_;
};

}  // namespace

std::unique_ptr<Vocabulary> vocabularyOf(const Options& options) {
  auto vocabulary =
      options.vocabulary.empty() ? byteVocabulary() : wordPieceVocabulary(options.vocabulary);
  if (vocabulary->size() > options.shape.vocabulary) {
    throw Failure(Exit::kData,
                  fmt::format("{} has {} words, but {} has room for {}", options.vocabulary,
                              vocabulary->size(), options.model, options.shape.vocabulary));
  }
  return vocabulary;
}

std::unique_ptr<BatchSource> makeBatchSource(const Options& options, std::span<const uint8_t> text,
                                             size_t samplesPerStep) {
  if (fillsMasks(options.shape.family)) {
    return std::make_unique<SentencePairs>(vocabularyOf(options), text,
                                           static_cast<size_t>(options.length), samplesPerStep,
                                           options.seed, options.shape.family == Family::kBert);
  }
  return std::make_unique<NextBytes>(options, text, samplesPerStep);
}

}  // namespace weft::train
