// SPDX-License-Identifier: Apache-2.0
// Operators of libtorch, which on processors has none of these in fp16, and good products of matrices in bf16 on some alone.
// There they are computed in fp32 and rounded once, as tensor cores do, forward and backward: what is kept for backward is
// of 16 bits, and gradients that leave the range of fp16 become infinite. All others are libtorch's own.
#pragma once

#include <ATen/core/Tensor.h>

namespace weft::train::ops {

// The bias may be undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});
// Its three gradients, for those who put something between them, by the gradient of what it gave; in the types of the input
// and of the weight. The input is as asFactor() had it.
at::Tensor gradientOfInput(const at::Tensor& gradient, const at::Tensor& weight,
                           at::ScalarType type);
at::Tensor gradientOfWeight(const at::Tensor& gradient, const at::Tensor& x, at::ScalarType type);
at::Tensor gradientOfBias(const at::Tensor& gradient, at::ScalarType type);
// As a product takes it: under autocast a copy in its type.
at::Tensor asFactor(const at::Tensor& x);
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
