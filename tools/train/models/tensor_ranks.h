// SPDX-License-Identifier: Apache-2.0
// The ranks of a tensor group as those that collectives of tensors go among, at once or beside what this thread computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "weft/weft.hpp"

namespace weft::train {

class TensorRanks {
 public:
  // Outlives this.
  explicit TensorRanks(Communicator& ranks) : ranks_(ranks) {}
  TensorRanks(const TensorRanks&) = delete;
  TensorRanks& operator=(const TensorRanks&) = delete;

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }

  enum class Mode { kAtOnce, kBesideCompute };

  // What a collective makes; the caller holds it until it has waited.
  class Result {
   public:
    Result(at::Tensor in, at::Tensor out, const TensorRanks* beside)
        : in_(std::move(in)), out_(std::move(out)), beside_(beside) {}
    Result(const Result&) = delete;
    Result& operator=(const Result&) = delete;
    ~Result();  // memory that is still read and written stays until then
    // Throws what the collective has failed by.
    at::Tensor wait();

   private:
    at::Tensor in_, out_;
    const TensorRanks* beside_;  // null once it is done
  };

  // Each of a tensor of equal shape and type, fp32, bf16 or fp16, on all ranks, which make the same calls in the same order. One
  // that goes on beside compute is waited for before the next is called.
  Result allReduced(const at::Tensor& x, weftRedOp_t op, Mode mode = Mode::kAtOnce);
  // [ranks, shape of x]
  Result allGathered(const at::Tensor& x, Mode mode = Mode::kAtOnce);
  // Of x [ranks, shape], the sum of what all have for this rank.
  Result reduceScattered(const at::Tensor& x, Mode mode = Mode::kAtOnce);

 private:
  weftStream_t streamOf(Mode mode);
  Result begun(weftResult_t result, at::Tensor in, at::Tensor out, Mode mode);

  Communicator& ranks_;
  Stream stream_;
};

// Of its elements.
weftDataType_t typeOf(const at::Tensor& x);

}  // namespace weft::train
