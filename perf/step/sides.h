// SPDX-License-Identifier: Apache-2.0
// The two sides of weft-bench-step: a shard, and what does the same with separate calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reduce/optimizer.h"
#include "weft/shard.h"
#include "weft/weft.hpp"

namespace weft::bench {

// A model of bf16 parameters with fp32 weights and moments, sharded as ZeRO-1. Its gradients and
// parameters are those of both sides.
class Shard {
 public:
  struct Bucket {
    std::size_t offset = 0, elements = 0;  // in the gradients
    std::vector<std::size_t> parameters;   // in the order of backward
  };

  Shard(Communicator& comm, double millions, std::size_t bucketElements, bool eager);
  ~Shard() { weftShardDestroy(shard_); }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Before backward.
  void begin(bool clip);
  void ready(const Bucket& bucket);
  void done();
  void waitForFirst();  // until forward may begin
  void wait();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::size_t elements() const { return info().paddedElements; }
  std::size_t ownElements() const { return info().ownElements; }
  std::uint64_t wireBytes() const { return info().wireBytes; }
  std::uint16_t* gradients() const { return gradients_; }
  std::uint16_t* weights() const { return weights_; }

 private:
  weftShardInfo_t info() const;
  void findBuckets(std::size_t parameters);

  weftShard_t shard_ = nullptr;
  const bool eager_;
  std::uint16_t *weights_ = nullptr, *gradients_ = nullptr;  // of all, one after another
  std::vector<Bucket> buckets_;
};

// Private memory of whole pages, as large as the system has them: as a shard's own state is.
class Array {
 public:
  explicit Array(std::size_t elements);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
  std::size_t bytes_;
};

// Reduce-scatter, optimizer, all-gather.
enum class Optimizer {
  OnePass,  // from the sums on the wire to parameters, as the best separate kernels are
  Passes    // widen, AdamW, round, as in frameworks that make fp32 copies of the gradients
};
struct How {
  Optimizer optimizer = Optimizer::OnePass;
  bool clip = false;  // one pass more, in place of that which widens
};
class Separate {
 public:
  Separate(Communicator& comm, const Shard& shard);
  ~Separate() { weftMemFree(wire_); }
  Separate(const Separate&) = delete;
  Separate& operator=(const Separate&) = delete;

  // All at once.
  void step(How how);
  // By buckets, while backward goes on: reduced as they become ready, ...
  void reduce(const Shard::Bucket& bucket);
  // ... then stepped, and gathered in the order of forward. Returns when the first is there.
  void update(How how);
  void wait() { stream_.synchronize(); }

 private:
  double clipScale(bool keep);
  void optimize(How how);
  void stepInTiles(const reduce::AdamW& settings);
  void stepInPasses(const reduce::AdamW& settings);

  Communicator& comm_;
  const Shard& shard_;
  const std::size_t own_;
  void* wire_ = nullptr;
  Array master_, m_, v_, sums_;
  Stream stream_;
  std::int64_t steps_ = 0;
};

}  // namespace weft::bench
