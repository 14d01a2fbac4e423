// SPDX-License-Identifier: Apache-2.0
#include "tools/train/training_data.h"

#include <fmt/format.h>

#include <numeric>

#include "tools/train/bert_shard_samples.h"
#include "tools/train/corpus.h"
#include "tools/train/failure.h"
#include "tools/train/fingerprint.h"
#include "tools/train/megatron_order.h"

namespace weft::train {
namespace {

constexpr size_t kTraining = 0, kValidation = 1;

// Global sample t B + g of Megatron's order, as its data-parallel sampler deals them.
class MegatronSamples : public BatchSource {
 public:
  MegatronSamples(const Options& options, const MegatronData& data, SequenceRange part,
                  size_t samplesPerStep, uint64_t samples)
      : length_(static_cast<size_t>(options.length)),
        vocabulary_(options.shape.vocabulary),
        samplesPerStep_(samplesPerStep),
        data_(data),
        first_(part.begin),
        order_(lengthsOf(data, part, length_), static_cast<uint32_t>(options.seed), length_,
               samples) {}

  Batch batch(uint64_t step, uint64_t first, size_t count) const override {
    Batch batch;
    batch.samples = count;
    batch.length = length_;
    std::vector<int64_t> sample;
    for (uint64_t g = first; g < first + count; ++g) {
      sample.clear();
      for (const auto& [document, from, n] :
           order_.sample((step * samplesPerStep_ + g) % order_.samples()))
        data_.append(first_ + document, from, n, vocabulary_, sample);
      batch.tokens.insert(batch.tokens.end(), sample.begin(), sample.end() - 1);
      batch.targets.insert(batch.targets.end(), sample.begin() + 1, sample.end());
    }
    return batch;
  }

 private:
  static std::span<const int32_t> lengthsOf(const MegatronData& data, SequenceRange part,
                                            size_t length) {
    const std::span<const int32_t> all(data.index().lengths);
    const std::span<const int32_t> these = all.subspan(part.begin, part.end - part.begin);
    const int64_t tokens = std::accumulate(these.begin(), these.end(), int64_t{0});
    if (tokens < static_cast<int64_t>(length) + 1)
      throw Failure(
          Exit::kData,
          fmt::format("sequences {} to {} of {} have {} tokens, but --seq {} needs at least "
                      "{}; --split gives shares of sequences",
                      part.begin, part.end, data.file(), tokens, length, length + 1));
    return these;
  }

  size_t length_;
  int64_t vocabulary_;
  size_t samplesPerStep_;
  const MegatronData& data_;
  size_t first_;  // sequence
  MegatronOrder order_;
};

std::unique_ptr<BertShards> shardsOf(const Options& options) {
  if (options.shape.family != Family::kBert)
    throw Failure(Exit::kUsage,
                  fmt::format("--data {} has samples for BERT, HDF5 files of masked words, and not "
                              "for {}; name a text, or a --model of BERT's",
                              options.data, options.model));
  if (!options.vocabulary.empty())
    throw Failure(Exit::kUsage,
                  fmt::format("--vocab makes words of a text, and --data {} has their numbers "
                              "already; leave it out, and say --vocab-size where the model's does "
                              "not fit",
                              options.data));
  return std::make_unique<BertShards>(options.data, static_cast<size_t>(options.length));
}

}  // namespace

TrainingData::TrainingData(const Options& options) : options_(options) {
  if (options.classifies)
    readSentences();
  else if (!options.megatron.empty())
    tokens_ = std::make_unique<MegatronData>(options.megatron);
  else if (isBertShards(options.data))
    shards_ = shardsOf(options);
  else
    text_ =
        readCorpus(options.data, options.vocabulary.empty() ? TextIs::kAnyBytes : TextIs::kUtf8);
  if (!shards_ && options.readers > 0)
    throw Failure(Exit::kUsage, "--readers is for --data of HDF5 files; leave it out");
}

// Where no file is kept for validation, the last share of the sentences is.
void TrainingData::readSentences() {
  sentences_ = readLabelledSentences(options_.data, options_.classes);
  if (!options_.valid.empty()) {
    validSentences_ = readLabelledSentences(options_.valid, options_.classes);
    return;
  }
  const SequenceRange kept = shareOf(sentences_.size(), options_.split, kValidation);
  const auto from = sentences_.begin() + static_cast<ptrdiff_t>(kept.begin);
  validSentences_.assign(from, sentences_.begin() + static_cast<ptrdiff_t>(kept.end));
  const SequenceRange learned = shareOf(sentences_.size(), options_.split, kTraining);
  sentences_.resize(learned.end);
  if (learned.end == 0 || (options_.evalEvery > 0 && kept.begin == kept.end))
    throw Failure(Exit::kData,
                  fmt::format("{} has too few sentences for the shares of --split", options_.data));
}

uint64_t TrainingData::fingerprint() const {
  if (options_.classifies) return fingerprintOf(sentences_);
  if (shards_) return shards_->fingerprint();
  return tokens_ ? tokens_->fingerprint() : train::fingerprint(std::span<const uint8_t>(text_));
}

std::string TrainingData::description() const {
  if (shards_)
    return fmt::format("{}, {} samples in {} HDF5 files", options_.data, shards_->samples(),
                       shards_->files());
  if (options_.classifies)
    return fmt::format("{}, {} sentences of {} classes, and {} to evaluate", options_.data,
                       sentences_.size(), options_.classes, validSentences_.size());
  if (!tokens_) return fmt::format("{}, {} bytes", options_.data, text_.size());
  return fmt::format("{}, {} tokens in {} sequences", tokens_->file(), tokens_->tokens(),
                     tokens_->index().lengths.size());
}

std::string TrainingData::order(size_t samplesPerStep) const {
  if (!shards_) return {};
  return fmt::format("{} readers with batches of {}", readers(samplesPerStep), options_.batch);
}

std::unique_ptr<BatchSource> TrainingData::training(size_t samplesPerStep) const {
  return source(kTraining, samplesPerStep, static_cast<uint64_t>(options_.steps) * samplesPerStep);
}

std::unique_ptr<BatchSource> TrainingData::validation(size_t samplesPerStep) const {
  return source(kValidation, samplesPerStep,
                static_cast<uint64_t>(options_.evalBatches) * samplesPerStep);
}

std::unique_ptr<BatchSource> TrainingData::source(size_t share, size_t samplesPerStep,
                                                  uint64_t samples) const {
  using Order = LabelledSamples::Order;
  if (options_.classifies)
    return std::make_unique<LabelledSamples>(
        vocabularyOf(options_), share == kTraining ? sentences_ : validSentences_,
        static_cast<size_t>(options_.length), samplesPerStep, options_.seed,
        share == kTraining ? Order::kShuffled : Order::kAsTheyAre);
  const SequenceRange part = shareOf(units(), options_.split, share);
  if (tokens_)
    return std::make_unique<MegatronSamples>(options_, *tokens_, part, samplesPerStep, samples);
  if (shards_)
    return std::make_unique<BertShardSamples>(
        *shards_, part,
        ShardReading{options_.shape.vocabulary, static_cast<size_t>(options_.batch),
                     readers(samplesPerStep), samplesPerStep, options_.seed});
  return makeBatchSource(options_, std::span(text_).subspan(part.begin, part.end - part.begin),
                         samplesPerStep);
}

uint64_t TrainingData::units() const {
  if (shards_) return shards_->samples();
  return tokens_ ? tokens_->index().lengths.size() : text_.size();
}

size_t TrainingData::readers(size_t samplesPerStep) const {
  if (options_.readers > 0) return static_cast<size_t>(options_.readers);
  const auto ofRank = static_cast<size_t>(options_.batch * options_.accumulate);
  return options_.reproducible ? 1 : samplesPerStep / ofRank;
}

}  // namespace weft::train
