// SPDX-License-Identifier: Apache-2.0
// Operators of libtorch, which on processors has none of these in fp16. There they are computed in fp32 and rounded once, as
// tensor cores do, forward and backward: what is kept for backward is fp16, and gradients that leave its range become
// infinite. Of any other type they are libtorch's own.
#pragma once

#include <ATen/core/Tensor.h>

namespace weft::train::ops {

// The bias may be undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});
// Of matrices with the same leading dimensions.
at::Tensor matmul(const at::Tensor& a, const at::Tensor& b);
// Over the last dimension.
at::Tensor softmax(const at::Tensor& x);
at::Tensor layerNorm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias,
                     double epsilon);
// "none" or "tanh".
at::Tensor gelu(const at::Tensor& x, const char* approximation = "none");
at::Tensor tanh(const at::Tensor& x);
// Gradients of a row that is used often are added in fp32.
at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices);

}  // namespace weft::train::ops
