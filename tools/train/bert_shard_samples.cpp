// SPDX-License-Identifier: Apache-2.0
#include "tools/train/bert_shard_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/train/failure.h"
#include "tools/train/random.h"
#include "tools/train/stopwatch.h"

namespace weft::train {
namespace {

// A file with less than a batch is told; what a split leaves of one is not learned.
std::vector<ShardPiece> piecesOfBatches(const BertShards& shards, SequenceRange part,
                                        size_t batch) {
  std::vector<ShardPiece> pieces = shards.pieces(part);
  for (const ShardPiece& piece : pieces)
    if (piece.isWhole && piece.count < batch)
      throw Failure(Exit::kData, fmt::format("{} has {} samples, less than a --batch of {}",
                                             shards.path(piece.file), piece.count, batch));
  std::erase_if(pieces, [&](const ShardPiece& piece) { return piece.count < batch; });
  if (pieces.empty())
    throw Failure(Exit::kData,
                  fmt::format("samples {} to {} of the {} in these HDF5 files are less than a "
                              "--batch of {}; --split gives shares of samples",
                              part.begin, part.end, shards.samples(), batch));
  return pieces;
}

std::vector<uint64_t> batchesOf(const std::vector<ShardPiece>& pieces, size_t batch) {
  std::vector<uint64_t> batches;
  for (const ShardPiece& piece : pieces) batches.push_back(piece.count / batch);
  return batches;
}

}  // namespace

BertShardSamples::BertShardSamples(const BertShards& shards, SequenceRange part,
                                   const ShardReading& reading)
    : shards_(shards),
      reading_(reading),
      pieces_(piecesOfBatches(shards, part, reading.batch)),
      order_(batchesOf(pieces_, reading.batch), reading.readers, reading.seed) {
  const size_t micros = reading.samplesPerStep / reading.batch;
  if (micros % reading.readers != 0)
    throw Failure(
        Exit::kUsage,
        fmt::format("--readers {} does not divide the {} batches of a step, of which each "
                    "reader gives as many",
                    reading.readers, micros));
}

Batch BertShardSamples::batch(uint64_t step, uint64_t first, size_t count) const {
  const std::lock_guard lock(mutex_);
  Batch batch;
  batch.samples = count;
  const uint64_t ofReader = reading_.samplesPerStep / reading_.batch / reading_.readers;
  for (uint64_t g = first; g < first + count; ++g) {
    const uint64_t micro = g / reading_.batch, reader = micro % reading_.readers;
    const auto place = order_.place(reader, step * ofReader + micro / reading_.readers);
    const Samples samples = samplesOf(reader, place);
    const uint64_t inFile = place.batch * reading_.batch + g % reading_.batch;
    const uint64_t key = mix(reading_.seed ^ mix(place.visit));
    batch.length = samples->length;
    shards_.append(*samples, permute(inFile, pieces_[place.file].count, key), reading_.vocabulary,
                   batch);
  }
  return batch;
}

BertShardSamples::Samples BertShardSamples::samplesOf(uint64_t reader,
                                                      const BertShardOrder::Place& place) const {
  inUse_[reader] = {place.file, place.next};
  std::erase_if(read_, [this](const auto& each) {
    return std::ranges::none_of(inUse_, [&](const auto& use) {
      return use.second.first == each.first || use.second.second == each.first;
    });
  });
  beginToRead(place.file);
  Samples samples = waitFor(read_.at(place.file));
  beginToRead(place.next);  // not before: libhdf5 reads one thing at a time
  return samples;
}

BertShardSamples::Samples BertShardSamples::waitFor(Reading& reading) const {
  const Stopwatch waiting;
  const Read& read = reading.read.get();
  if (!std::exchange(reading.isCounted, true))
    secondsBeside_ = secondsBeside_ + std::max(read.seconds - waiting.seconds(), 0.0);
  return read.samples;
}

void BertShardSamples::beginToRead(size_t piece) const {
  if (read_.contains(piece)) return;
  const auto read = [this, piece]() -> Read {
    const Stopwatch reading;
    auto samples = std::make_shared<const ShardSamples>(shards_.read(pieces_[piece]));
    return {std::move(samples), reading.seconds()};
  };
  read_[piece].read = std::async(std::launch::async, read);
}

}  // namespace weft::train
