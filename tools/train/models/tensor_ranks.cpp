// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/tensor_ranks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <utility>
#include <vector>

namespace weft::train {

using at::Tensor;

weftDataType_t typeOf(const Tensor& x) {
  if (x.scalar_type() == at::kHalf) return weftFloat16;
  return x.scalar_type() == at::kBFloat16 ? weftBfloat16 : weftFloat32;
}

TensorRanks::Result::~Result() {
  if (beside_ != nullptr) static_cast<void>(weftStreamSynchronize(beside_->stream_));
}

Tensor TensorRanks::Result::wait() {
  if (const TensorRanks* const beside = std::exchange(beside_, nullptr))
    check(weftStreamSynchronize(beside->stream_), beside->ranks_);
  return out_;
}

weftStream_t TensorRanks::streamOf(Mode mode) {
  return mode == Mode::kAtOnce ? nullptr : static_cast<weftStream_t>(stream_);
}

TensorRanks::Result TensorRanks::begun(weftResult_t result, Tensor in, Tensor out, Mode mode) {
  check(result, ranks_);
  return {std::move(in), std::move(out), mode == Mode::kAtOnce ? nullptr : this};
}

TensorRanks::Result TensorRanks::allReduced(const Tensor& x, weftRedOp_t op, Mode mode) {
  const Tensor in = x.contiguous(), out = at::empty_like(in);
  return begun(weftAllReduce(in.data_ptr(), out.data_ptr(), static_cast<size_t>(in.numel()),
                             typeOf(in), op, ranks_, streamOf(mode), nullptr),
               in, out, mode);
}

TensorRanks::Result TensorRanks::allGathered(const Tensor& x, Mode mode) {
  const Tensor in = x.contiguous();
  std::vector<int64_t> shape = in.sizes().vec();
  shape.insert(shape.begin(), size());
  const Tensor out = at::empty(shape, in.options());
  return begun(weftAllGather(in.data_ptr(), out.data_ptr(), static_cast<size_t>(in.numel()),
                             typeOf(in), ranks_, streamOf(mode), nullptr),
               in, out, mode);
}

TensorRanks::Result TensorRanks::reduceScattered(const Tensor& x, Mode mode) {
  const Tensor in = x.contiguous(), out = at::empty(in.sizes().slice(1), in.options());
  return begun(weftReduceScatter(in.data_ptr(), out.data_ptr(), static_cast<size_t>(out.numel()),
                                 typeOf(in), weftSum, ranks_, streamOf(mode), nullptr),
               in, out, mode);
}

}  // namespace weft::train
