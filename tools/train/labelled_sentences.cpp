// SPDX-License-Identifier: Apache-2.0
#include "tools/train/labelled_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "tools/train/corpus.h"
#include "tools/train/failure.h"
#include "tools/train/fingerprint.h"
#include "tools/train/random.h"
#include "tools/train/utf8.h"

namespace weft::train {
namespace {

constexpr std::string_view kFirstLine = "sentence\tlabel";
constexpr size_t kMostOfLine = 60;  // bytes of a line

class LabelledLines {
 public:
  LabelledLines(std::string file, int64_t classes) : file_(std::move(file)), classes_(classes) {}

  void head(std::string_view line) {
    if (line != kFirstLine)
      refuse(
          "is not the head of SST-2's files, 'sentence<TAB>label', as --task classification "
          "learns",
          line);
  }

  LabelledSentence next(std::string_view line) {
    ++number_;
    requireUtf8(line, file_, number_);
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos)
      refuse("is not a sentence, one tab and a label", line);
    return {std::string(line.substr(0, tab)), labelOf(line.substr(tab + 1), line)};
  }

 private:
  int64_t labelOf(std::string_view word, std::string_view line) const {
    int64_t label = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), label);
    if (error != std::errc() || end != word.data() + word.size() || label < 0 || label >= classes_)
      refuse(fmt::format("has no label of 0 to {} after its tab (--classes says how many there "
                         "are)",
                         classes_ - 1),
             line);
    return label;
  }

  [[noreturn]] void refuse(const std::string& why, std::string_view line) const {
    const size_t shown = std::min(line.size(), kMostOfLine);
    throw Failure(Exit::kData,
                  fmt::format("{}: line {} {}: '{}{}'", file_, number_, why, line.substr(0, shown),
                              shown < line.size() ? "..." : ""));
  }

  const std::string file_;
  const int64_t classes_;
  size_t number_ = 1;
};

}  // namespace

std::vector<LabelledSentence> readLabelledSentences(const std::string& file, int64_t classes) {
  requireFile(file);
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  LabelledLines lines(file, classes);
  std::vector<LabelledSentence> sentences;
  std::string line;
  const auto next = [&] {
    if (!std::getline(stream, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  };
  lines.head(next() ? line : std::string());
  while (next()) sentences.push_back(lines.next(line));
  if (!stream.is_open() || stream.bad())
    throw Failure(Exit::kData, fmt::format("cannot read {}: {}", file, std::strerror(errno)));
  if (sentences.empty())
    throw Failure(Exit::kData, fmt::format("{} has a head and no sentence", file));
  return sentences;
}

uint64_t fingerprintOf(const std::vector<LabelledSentence>& sentences) {
  uint64_t all = sentences.size();
  for (const auto& [text, label] : sentences)
    all = mix(all + static_cast<uint64_t>(label)) ^ fingerprint(std::span<const char>(text));
  return all;
}

LabelledSamples::LabelledSamples(std::unique_ptr<Vocabulary> vocabulary,
                                 const std::vector<LabelledSentence>& sentences, size_t length,
                                 size_t samplesPerStep, uint64_t seed, Order order)
    : vocabulary_(std::move(vocabulary)),
      sentences_(sentences),
      length_(length),
      samplesPerStep_(samplesPerStep),
      seed_(seed),
      order_(order) {}

uint64_t LabelledSamples::stepsOfAll() const {
  return (sentences_.size() + samplesPerStep_ - 1) / samplesPerStep_;
}

Batch LabelledSamples::batch(uint64_t step, uint64_t first, size_t count) const {
  static const LabelledSentence kNone{"", Batch::kNoTarget};
  Batch batch;
  batch.samples = count;
  batch.length = length_;
  const uint64_t all = sentences_.size();
  for (uint64_t g = first; g < first + count; ++g) {
    const uint64_t index = step * samplesPerStep_ + g;
    if (order_ == Order::kShuffled)
      append(sentences_[permute(index % all, all, mix(seed_ ^ mix(index / all)))], batch);
    else
      append(index < all ? sentences_[index] : kNone, batch);
  }
  return batch;
}

void LabelledSamples::append(const LabelledSentence& sentence, Batch& batch) const {
  const Vocabulary::Marks& marks = vocabulary_->marks();
  std::vector<int32_t> tokens{marks.start};
  vocabulary_->encode(
      {reinterpret_cast<const uint8_t*>(sentence.text.data()), sentence.text.size()}, tokens);
  tokens.resize(std::min(tokens.size(), length_ - 1));
  tokens.push_back(marks.separator);
  batch.used.push_back(static_cast<int64_t>(tokens.size()));
  batch.labels.push_back(sentence.label);
  tokens.resize(length_, marks.pad);
  batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
  batch.segments.resize(batch.tokens.size(), 0);
}

}  // namespace weft::train
