// SPDX-License-Identifier: Apache-2.0
// weft-train's files of sentences with classes, and the samples that come of them.
#include "tools/train/labelled_sentences.h"

#include "fuzz.h"
#include "tools/train/failure.h"

namespace weft::fuzz {

void tryInput(Input input) {
  constexpr std::int64_t kClasses = 3;
  constexpr std::size_t kLength = 9;
  std::vector<train::LabelledSentence> sentences;
  try {
    sentences = train::readLabelledSentences(fileWith(textOf(input)), kClasses);
  } catch (const train::Failure&) {
    return;
  }
  require(!sentences.empty(), "a file has a sentence");
  for (const train::LabelledSentence& each : sentences) {
    require(each.label >= 0 && each.label < kClasses, "a label is of a class");
    require(each.text.find('\t') == std::string::npos, "a sentence has no tab");
  }
  using Samples = train::LabelledSamples;
  const Samples samples(train::byteVocabulary(), sentences, kLength, 2, 1,
                        Samples::Order::kAsTheyAre);
  const train::Batch batch = samples.batch(samples.stepsOfAll() - 1, 0, 2);
  require(batch.tokens.size() == 2 * kLength, "samples are filled up");
  for (const std::int64_t used : batch.used)
    require(used >= 2 && used <= static_cast<std::int64_t>(kLength), "marks are among them");
}

}  // namespace weft::fuzz
