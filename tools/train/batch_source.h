// SPDX-License-Identifier: Apache-2.0
// Turns the text into batches for a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tools/train/batch.h"
#include "tools/train/options.h"
#include "tools/train/vocabulary.h"

namespace weft::train {

// Sample g of step t is a pure function of (text, settings, seed, t, g), so it does not matter
// which rank computes it: N ranks with batch B see exactly what one rank with batch N * B sees.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Samples first .. first + count - 1 of a step.
  virtual Batch batch(uint64_t step, uint64_t first, size_t count) const = 0;
  // Tells vocabularies apart.
  virtual uint64_t vocabularyFingerprint() const { return 0; }
  // Seconds that threads of its own have read for the batches so far, less what batch() waited for them.
  virtual double secondsBeside() const { return 0; }
  // How many steps have all samples; 0 if there is no end.
  virtual uint64_t stepsOfAll() const { return 0; }
};

// BERT's, of bytes or of its file. Throws Failure if the model has no room for it.
std::unique_ptr<Vocabulary> vocabularyOf(const Options& options);

// What the model of `options` takes; `samplesPerStep` is the global batch. Throws Failure if the
// text is too short. Keeps a view of `text`.
std::unique_ptr<BatchSource> makeBatchSource(const Options& options, std::span<const uint8_t> text,
                                             size_t samplesPerStep);

}  // namespace weft::train
