// SPDX-License-Identifier: Apache-2.0
#include "tools/train/bert_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "tools/train/failure.h"
#include "tools/train/fingerprint.h"
#include "tools/train/hdf5_file.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

constexpr const char *kIds = "input_ids", *kMask = "input_mask", *kSegments = "segment_ids",
                     *kPositions = "masked_lm_positions", *kMaskedIds = "masked_lm_ids",
                     *kLabels = "next_sentence_labels";

bool isNamedAsShard(const fs::path& file) {
  return file.extension() == ".hdf5" || file.extension() == ".h5";
}

std::vector<std::string> shardsIn(const std::string& folder) {
  std::vector<std::string> all, training;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!isNamedAsShard(entry.path()) || !entry.is_regular_file(error)) continue;
    all.push_back(entry.path().string());
    if (entry.path().filename().string().find("training") != std::string::npos)
      training.push_back(all.back());
  }
  std::vector<std::string>& chosen = training.empty() ? all : training;
  std::ranges::sort(chosen);
  return chosen;
}

[[noreturn]] void refuseShard(const std::string& path, const char* dataset,
                              const std::string& why) {
  throw Failure(Exit::kData, fmt::format("{}, dataset {}: {}", path, dataset, why));
}

void requireShape(const Hdf5File& file, const char* dataset, const std::vector<uint64_t>& wanted) {
  const std::vector<uint64_t> is = file.dimensions(dataset);
  if (is == wanted) return;
  refuseShard(file.path(), dataset,
              fmt::format("its shape is [{}], and beside input_ids it is to be [{}]",
                          fmt::join(is, ", "), fmt::join(wanted, ", ")));
}

template <class T>
std::span<const T> rowOf(const std::vector<T>& values, uint64_t row, size_t width) {
  return std::span(values).subspan(row * width, width);
}

// A sample of a file, and what is wrong with it.
class SampleReader {
 public:
  SampleReader(const ShardSamples& samples, uint64_t sample, const std::string& path,
               int64_t vocabulary)
      : samples_(samples), sample_(sample), path_(path), vocabulary_(vocabulary) {}

  void append(Batch& batch) const {
    const auto ids = rowOf(samples_.inputIds, sample_, samples_.length);
    for (const int32_t id : ids) requireWord(kIds, id);
    batch.tokens.insert(batch.tokens.end(), ids.begin(), ids.end());
    const auto segments = rowOf(samples_.segmentIds, sample_, samples_.length);
    for (const int8_t segment : segments) requireBit(kSegments, segment);
    batch.segments.insert(batch.segments.end(), segments.begin(), segments.end());
    batch.used.push_back(used());
    const int8_t label = samples_.nextSentenceLabels[sample_];
    requireBit(kLabels, label);
    batch.labels.push_back(label);
    appendTargets(batch.used.back(), batch);
  }

 private:
  [[noreturn]] void refuse(const char* dataset, const std::string& why) const {
    refuseShard(path_, dataset,
                fmt::format("sample {} has {}", samples_.piece.first + sample_, why));
  }
  void requireWord(const char* dataset, int32_t id) const {
    if (id >= 0 && id < vocabulary_) return;
    refuse(dataset, fmt::format("the token {}, which is not below the model's vocabulary of {}; "
                                "name the tokenizer's as --vocab-size",
                                id, vocabulary_));
  }
  void requireBit(const char* dataset, int8_t value) const {
    if (value != 0 && value != 1) refuse(dataset, fmt::format("a {}, not 0 or 1", value));
  }

  int64_t used() const {
    const auto mask = rowOf(samples_.inputMask, sample_, samples_.length);
    for (const int8_t bit : mask) requireBit(kMask, bit);
    const auto used = std::ranges::find(mask, 0) - mask.begin();
    if (used == 0 || std::find(mask.begin() + used, mask.end(), 1) != mask.end())
      refuse(kMask, "padding that is not at its end alone");
    return used;
  }

  void appendTargets(int64_t used, Batch& batch) const {
    const size_t start = batch.targets.size();
    batch.targets.resize(start + samples_.length, Batch::kNoTarget);
    const auto positions = rowOf(samples_.maskedPositions, sample_, samples_.mostMasked);
    const auto ids = rowOf(samples_.maskedIds, sample_, samples_.mostMasked);
    for (size_t i = 0; i < positions.size() && positions[i] != 0; ++i) {
      if (positions[i] < 0 || positions[i] >= used)
        refuse(kPositions, fmt::format("position {}, and {} tokens", positions[i], used));
      requireWord(kMaskedIds, ids[i]);
      batch.targets[start + static_cast<size_t>(positions[i])] = ids[i];
    }
  }

  const ShardSamples& samples_;
  uint64_t sample_;
  const std::string& path_;
  int64_t vocabulary_;
};

}  // namespace

bool isBertShards(const std::string& data) {
  std::error_code error;
  return fs::is_directory(data, error) ? !shardsIn(data).empty() : isNamedAsShard(data);
}

BertShards::BertShards(const std::string& data, size_t length) : length_(length) {
  std::error_code error;
  const bool isFolder = fs::is_directory(data, error);
  for (const std::string& path : isFolder ? shardsIn(data) : std::vector<std::string>{data}) {
    const Hdf5File file(path);
    const std::vector<uint64_t> ids = file.dimensions(kIds), masked = file.dimensions(kPositions);
    if (ids.size() != 2 || ids[0] == 0 || masked.size() != 2)
      refuseShard(path, ids.size() != 2 || ids[0] == 0 ? kIds : kPositions,
                  "it is to have two dimensions, samples and what each has of it, and samples");
    if (ids[1] != length)
      refuseShard(path, kIds,
                  fmt::format("its samples have {} tokens, and --seq is {}; give --seq {}", ids[1],
                              length, ids[1]));
    requireShape(file, kMask, ids);
    requireShape(file, kSegments, ids);
    requireShape(file, kPositions, {ids[0], masked[1]});
    requireShape(file, kMaskedIds, {ids[0], masked[1]});
    requireShape(file, kLabels, {ids[0]});
    files_.push_back({path, ids[0], masked[1]});
  }
}

uint64_t BertShards::samples() const {
  uint64_t all = 0;
  for (const File& file : files_) all += file.samples;
  return all;
}

uint64_t BertShards::fingerprint() const {
  std::string all;
  for (const auto& [path, samples, mostMasked] : files_)
    all += fmt::format("{} {} {} {}\n", fs::path(path).filename().string(), samples, length_,
                       mostMasked);
  return train::fingerprint(std::span<const char>(all));
}

std::vector<ShardPiece> BertShards::pieces(SequenceRange part) const {
  std::vector<ShardPiece> pieces;
  uint64_t start = 0;  // of the file among all samples
  for (size_t i = 0; i < files_.size(); start += files_[i++].samples) {
    const uint64_t n = files_[i].samples;
    const uint64_t first = std::clamp<uint64_t>(part.begin, start, start + n) - start;
    const uint64_t end = std::clamp<uint64_t>(part.end, start, start + n) - start;
    if (end > first) pieces.push_back({i, first, end - first, end - first == n});
  }
  return pieces;
}

ShardSamples BertShards::read(const ShardPiece& piece) const {
  const auto [index, first, count, isWhole] = piece;
  const Hdf5File file(files_[index].path);
  ShardSamples samples{.piece = piece, .length = length_, .mostMasked = files_[index].mostMasked};
  samples.inputIds = file.rowsOfInt32(kIds, first, count);
  samples.inputMask = file.rowsOfInt8(kMask, first, count);
  samples.segmentIds = file.rowsOfInt8(kSegments, first, count);
  samples.maskedPositions = file.rowsOfInt32(kPositions, first, count);
  samples.maskedIds = file.rowsOfInt32(kMaskedIds, first, count);
  samples.nextSentenceLabels = file.rowsOfInt8(kLabels, first, count);
  return samples;
}

void BertShards::append(const ShardSamples& samples, uint64_t sample, int64_t vocabulary,
                        Batch& batch) const {
  SampleReader(samples, sample, path(samples.piece.file), vocabulary).append(batch);
}

}  // namespace weft::train
