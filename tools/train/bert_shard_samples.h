// SPDX-License-Identifier: Apache-2.0
// Batches of BERT's shards, in the published order of files.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/train/batch_source.h"
#include "tools/train/bert_shard_order.h"
#include "tools/train/bert_shards.h"

namespace weft::train {

struct ShardReading {
  int64_t vocabulary;
  size_t batch;           // sequences of a reader at a time
  size_t readers;         // of the published order; usually the data-parallel ranks
  size_t samplesPerStep;  // a multiple of batch x readers
  uint64_t seed;
};

// A step is micro-batches of `batch` sequences; the i-th is reader i mod readers' next one, whichever rank learns it. So
// what a sample is does not depend on the ranks, as long as `readers` and `batch` are the same. A reader has a file at a
// time and goes through it in a shuffled order, less what does not fill a batch. Its next file is read meanwhile.
class BertShardSamples : public BatchSource {
 public:
  // Of a part of the samples. Throws Failure if the readers cannot share a step, or there is no batch of one file. Keeps a
  // view of `shards`.
  BertShardSamples(const BertShards& shards, SequenceRange part, const ShardReading& reading);

  Batch batch(uint64_t step, uint64_t first, size_t count) const override;
  double secondsBeside() const override { return secondsBeside_; }

 private:
  using Samples = std::shared_ptr<const ShardSamples>;
  struct Read {
    Samples samples;
    double seconds;  // that it took
  };
  struct Reading {
    std::shared_future<Read> read;
    bool isCounted = false;
  };

  Samples samplesOf(uint64_t reader, const BertShardOrder::Place& place) const;
  void beginToRead(size_t piece) const;
  Samples waitFor(Reading& reading) const;

  const BertShards& shards_;
  ShardReading reading_;
  std::vector<ShardPiece> pieces_;
  mutable std::mutex mutex_;  // of what follows
  mutable BertShardOrder order_;
  mutable std::map<size_t, Reading> read_;                       // pieces, or what reads them
  mutable std::map<uint64_t, std::pair<size_t, size_t>> inUse_;  // by reader, and its next one
  mutable std::atomic<double> secondsBeside_ = 0;
};

}  // namespace weft::train
