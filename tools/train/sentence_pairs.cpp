// SPDX-License-Identifier: Apache-2.0
#include "tools/train/sentence_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

constexpr size_t kMarks = 3;  // in a sample: one [CLS], two [SEP]
constexpr size_t kFewestSentences = 4;
constexpr size_t kShortest = 8;  // tokens of a sample

bool isSpace(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool endsSentence(uint8_t c) { return c == '.' || c == '!' || c == '?'; }

// 20 of 128 tokens, 80 of 512.
size_t mostMasked(size_t length) { return (length * 5 + 31) / 32; }

}  // namespace

std::vector<std::span<const uint8_t>> splitSentences(std::span<const uint8_t> text) {
  std::vector<std::span<const uint8_t>> sentences;
  size_t start = 0, end = 0;  // of the sentence so far, without spaces around it
  const auto close = [&] {
    if (end > start) sentences.push_back(text.subspan(start, end - start));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!isSpace(text[i])) {
      end = i + 1;
      continue;
    }
    const bool emptyLine = text[i] == '\n' && i + 1 < text.size() && text[i + 1] == '\n';
    if (end <= start) {
      start = end = i + 1;
    } else if (emptyLine || (end == i && endsSentence(text[i - 1]))) {
      close();
      start = end = i + 1;
    }
  }
  close();
  return sentences;
}

SentencePairs::SentencePairs(std::unique_ptr<Vocabulary> vocabulary, std::span<const uint8_t> text,
                             size_t length, size_t samplesPerStep, uint64_t seed, bool nextSentence)
    : vocabulary_(std::move(vocabulary)),
      length_(length),
      samplesPerStep_(samplesPerStep),
      seed_(seed),
      nextSentence_(nextSentence) {
  if (length < kShortest) {
    throw Failure(Exit::kUsage, fmt::format("--seq {} is too short for a pair of sentences; it "
                                            "needs at least {}",
                                            length, kShortest));
  }
  for (const std::span<const uint8_t> sentence : splitSentences(text)) addSentence(sentence);
  starts_.push_back(tokens_.size());
  if (sentences() < kFewestSentences) {
    throw Failure(
        Exit::kData,
        fmt::format(
            "the text, or its share of --split, has {} sentences, but BERT needs at least {}",
            sentences(), kFewestSentences));
  }
}

// A sentence that two of do not fit into a sample counts as several.
void SentencePairs::addSentence(std::span<const uint8_t> sentence) {
  const size_t most = (length_ - kMarks) / 2;
  size_t from = tokens_.size();
  vocabulary_->encode(sentence, tokens_);
  for (; from < tokens_.size(); from += most) starts_.push_back(from);
}

Batch SentencePairs::batch(uint64_t step, uint64_t first, size_t count) const {
  Batch batch;
  batch.samples = count;
  batch.length = length_;
  for (uint64_t g = first; g < first + count; ++g) {
    const uint64_t index = step * samplesPerStep_ + g;
    const uint64_t epoch = mix(seed_ ^ mix(index / sentences()));
    Random random(mix(epoch ^ mix(index)));
    append(choosePair(permute(index % sentences(), sentences(), epoch), random), random, batch);
  }
  return batch;
}

// The sentence after the run that starts with `sentence` and has at least so many tokens.
size_t SentencePairs::endOfRun(size_t sentence, size_t tokens) const {
  const auto end = std::lower_bound(starts_.begin() + static_cast<ptrdiff_t>(sentence) + 1,
                                    starts_.end() - 1, starts_[sentence] + tokens);
  return static_cast<size_t>(end - starts_.begin());
}

SentencePairs::Run SentencePairs::run(size_t from, size_t to) const {
  return Run(tokens_).subspan(starts_[from], starts_[to] - starts_[from]);
}

SentencePairs::Pair SentencePairs::choosePair(size_t sentence, Random& random) const {
  const size_t room = length_ - kMarks;
  const size_t target = random.below(10) == 0 ? 2 + random.below(room - 1) : room;
  const size_t from = std::min(sentence, sentences() - 2);
  const size_t to = std::max(endOfRun(from, target), from + 2);
  const size_t cut = from + 1 + random.below(to - from - 1);
  Pair pair{run(from, cut), run(cut, to), 0};
  const size_t others = sentences() - (to - from);
  if (nextSentence_ && random.below(2) == 1 && others > 0) {
    const size_t elsewhere = (to + random.below(others)) % sentences();
    const size_t rest = target - std::min(target - 1, pair.first.size());
    pair = {pair.first, run(elsewhere, endOfRun(elsewhere, rest)), 1};
  }
  // What meets stays: the first run loses its beginning, the second its end.
  while (pair.first.size() + pair.second.size() > target) {
    if (pair.first.size() > pair.second.size()) {
      pair.first = pair.first.subspan(1);
    } else {
      pair.second = pair.second.first(pair.second.size() - 1);
    }
  }
  return pair;
}

void SentencePairs::append(const Pair& pair, Random& random, Batch& batch) const {
  const auto& [first, second, label] = pair;
  const Vocabulary::Marks& marks = vocabulary_->marks();
  std::vector<int64_t> tokens{marks.start};
  tokens.insert(tokens.end(), first.begin(), first.end());
  const size_t separator = tokens.size();
  tokens.push_back(marks.separator);
  tokens.insert(tokens.end(), second.begin(), second.end());
  tokens.push_back(marks.separator);
  std::vector<int64_t> targets(length_, Batch::kNoTarget), segments(length_, 0);
  if (nextSentence_)
    std::fill_n(segments.begin() + static_cast<ptrdiff_t>(separator) + 1, second.size() + 1, 1);
  mask(tokens, targets, separator, random);
  batch.used.push_back(static_cast<int64_t>(tokens.size()));
  batch.labels.push_back(label);
  tokens.resize(length_, marks.pad);
  batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
  batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
  batch.segments.insert(batch.segments.end(), segments.begin(), segments.end());
}

// Of 15 % of the tokens, marks counted but never chosen: 80 % become [MASK], 10 % stay, and 10 %
// become a random word.
void SentencePairs::mask(std::span<int64_t> tokens, std::span<int64_t> targets, size_t separator,
                         Random& random) const {
  std::vector<size_t> places;
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (i != separator) places.push_back(i);
  }
  const auto wanted = static_cast<size_t>(std::lround(0.15 * static_cast<double>(tokens.size())));
  const size_t count = std::min({mostMasked(length_), std::max<size_t>(wanted, 1), places.size()});
  for (size_t i = 0; i < count; ++i) {
    std::swap(places[i], places[i + random.below(places.size() - i)]);
    int64_t& token = tokens[places[i]];
    targets[places[i]] = token;
    const uint64_t fate = random.below(10), word = random.below(vocabulary_->words().size());
    if (fate < 8) {
      token = vocabulary_->marks().mask;
    } else if (fate == 8) {
      token = vocabulary_->words()[word];
    }
  }
}

}  // namespace weft::train
