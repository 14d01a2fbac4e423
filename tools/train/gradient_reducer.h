// SPDX-License-Identifier: Apache-2.0
// Data parallelism: averages the gradients over the ranks while backward still computes others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/train/flat_layout.h"
#include "weft/weft.hpp"

namespace weft::train {

// What gradients are while they travel. bf16 halves the traffic: they are rounded once before the
// all-reduce, which adds in fp32 and rounds once more.
enum class Wire { kFloat32, kBfloat16 };

// A step is begin(), ready() for every parameter in any order, finish(). Once all parameters of a
// bucket and of all buckets before it are ready, the bucket's all-reduce is queued on the stream:
// every rank queues the same buckets in the same order, whatever the timing. Used by one thread.
class GradientReducer {
 public:
  // Without `overlap` everything is queued in finish(), to show what overlap is worth. `layout` and
  // `gradients` must outlive this.
  GradientReducer(Communicator& team, Stream& stream, const FlatLayout& layout,
                  std::span<float> gradients, Wire wire, bool overlap);
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  void begin();
  // The gradient of `parameter` is complete. Ignored outside of a step, so that the micro-batches
  // before the last one may accumulate.
  void ready(size_t parameter);
  // Returns when the stream is empty, which means that all gradients are averaged. Throws
  // weft::Error, and std::logic_error if a parameter was not ready.
  void finish();

 private:
  struct Packing {  // what a stream callback needs
    float* gradients;
    Bfloat16* wire;
    size_t size;
  };
  static void pack(void* packing);
  static void unpack(void* packing);
  void queueCompleteBuckets();
  void queue(size_t bucket);

  Communicator& team_;
  Stream& stream_;
  const FlatLayout& layout_;
  std::span<float> gradients_;
  std::vector<Bfloat16> wire_;     // empty on an fp32 wire
  std::vector<Packing> packings_;  // one a bucket
  std::vector<size_t> missing_;    // parameters that a bucket still waits for
  size_t next_ = 0;                // the first bucket that is not queued
  bool overlap_;
  bool active_ = false;
};

}  // namespace weft::train
