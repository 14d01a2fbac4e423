// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/operators.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

namespace weft::train::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

bool isHalf(const Tensor& x) { return x.scalar_type() == at::kHalf; }
Tensor wide(const Tensor& x) { return x.to(at::kFloat); }
Tensor half(const Tensor& x) { return x.to(at::kHalf); }

// Those of oneDNN, which libtorch calls where the processor has these instructions. Elsewhere its own add up in bf16, which
// loses a twentieth of a sum of 2,048 products, and take 7 to 54 times as long as those in fp32.
bool hasProductsOfBfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

at::ScalarType typeOfFactor(const Tensor& x) {
  return at::autocast::is_cpu_enabled() ? at::autocast::get_autocast_cpu_dtype() : x.scalar_type();
}

// Are its products to be computed in fp32?
bool isNarrowFactor(const Tensor& x) {
  static const bool bfloat16 = hasProductsOfBfloat16();
  const at::ScalarType type = typeOfFactor(x);
  return type == at::kHalf || (type == at::kBFloat16 && !bfloat16);
}

// While it lives fp32 stays fp32, under autocast as well.
using NoAutocast = c10::impl::ExcludeDispatchKeyGuard;

struct WideLinear : Function<WideLinear> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias) {
    const NoAutocast guard(c10::DispatchKey::AutocastCPU);
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    const Tensor in = wide(x), matrix = wide(weight);
    const Tensor y = bias ? at::linear(in, matrix, wide(*bias)) : at::linear(in, matrix);
    return y.to(x.scalar_type());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const NoAutocast guard(c10::DispatchKey::AutocastCPU);
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = wide(gradients[0]);
    const at::ScalarType type = saved[0].scalar_type();
    const bool hasBias = context->saved_data.at("bias").toBool();
    return {gradientOfInput(gradient, saved[1], type), gradientOfWeight(gradient, saved[0], type),
            hasBias ? gradientOfBias(gradient, type) : Tensor()};
  }
};

struct WideMatmul : Function<WideMatmul> {
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b) {
    const NoAutocast guard(c10::DispatchKey::AutocastCPU);
    context->save_for_backward({a, b});
    return at::matmul(wide(a), wide(b)).to(a.scalar_type());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const NoAutocast guard(c10::DispatchKey::AutocastCPU);
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = wide(gradients[0]);
    const at::ScalarType type = saved[0].scalar_type();
    return {at::matmul(gradient, wide(saved[1]).transpose(-2, -1)).to(type),
            at::matmul(wide(saved[0]).transpose(-2, -1), gradient).to(type)};
  }
};

struct HalfSoftmax : Function<HalfSoftmax> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    Tensor y = half(at::softmax(wide(x), -1));
    context->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor y = wide(context->get_saved_variables()[0]);
    return {half(at::_softmax_backward_data(wide(gradients[0]), y, -1, at::kFloat))};
  }
};

struct HalfLayerNorm : Function<HalfLayerNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& gain,
                        const Tensor& bias, double epsilon) {
    const auto [y, mean, scale] =
        at::native_layer_norm(wide(x), {x.size(-1)}, wide(gain), wide(bias), epsilon);
    context->save_for_backward({x, gain, bias, mean, scale});
    return half(y);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto [ofX, ofGain, ofBias] = at::native_layer_norm_backward(
        wide(gradients[0]), wide(saved[0]), {saved[0].size(-1)}, saved[3], saved[4], wide(saved[1]),
        wide(saved[2]), {true, true, true});
    return {half(ofX), half(ofGain), half(ofBias), Tensor()};
  }
};

struct HalfGelu : Function<HalfGelu> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const std::string& kind) {
    context->save_for_backward({x});
    context->saved_data["kind"] = kind;
    return half(at::gelu(wide(x), kind));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor x = wide(context->get_saved_variables()[0]);
    return {half(at::gelu_backward(wide(gradients[0]), x,
                                   context->saved_data.at("kind").toStringRef())),
            Tensor()};
  }
};

struct HalfTanh : Function<HalfTanh> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    Tensor y = half(at::tanh(wide(x)));
    context->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor y = wide(context->get_saved_variables()[0]);
    return {half(at::tanh_backward(wide(gradients[0]), y))};
  }
};

struct HalfEmbedding : Function<HalfEmbedding> {
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& indices) {
    context->save_for_backward({indices});
    context->saved_data["rows"] = table.size(0);
    return at::embedding(table, indices);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor indices = context->get_saved_variables()[0];
    const int64_t rows = context->saved_data.at("rows").toInt();
    return {half(at::embedding_dense_backward(wide(gradients[0]), indices, rows, -1, false)),
            Tensor()};
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!isNarrowFactor(x))
    return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
  return WideLinear::apply(asFactor(x), asFactor(weight),
                           bias.defined() ? c10::make_optional(asFactor(bias)) : c10::nullopt);
}

// Products are of the gradient's type, under autocast as well.
Tensor gradientOfInput(const Tensor& gradient, const Tensor& weight, at::ScalarType type) {
  return ops::matmul(gradient, weight.to(gradient.scalar_type())).to(type);
}

Tensor gradientOfWeight(const Tensor& gradient, const Tensor& x, at::ScalarType type) {
  const Tensor rows = gradient.flatten(0, -2), inputs = x.to(gradient.scalar_type()).flatten(0, -2);
  return ops::matmul(rows.t(), inputs).to(type);
}

Tensor gradientOfBias(const Tensor& gradient, at::ScalarType type) {
  return gradient.flatten(0, -2).sum(at::IntArrayRef{0}, false, at::kFloat).to(type);
}

Tensor asFactor(const Tensor& x) { return x.to(typeOfFactor(x)); }

Tensor matmul(const Tensor& a, const Tensor& b) {
  return isNarrowFactor(a) ? WideMatmul::apply(asFactor(a), asFactor(b)) : at::matmul(a, b);
}

Tensor softmax(const Tensor& x) { return isHalf(x) ? HalfSoftmax::apply(x) : at::softmax(x, -1); }

Tensor layerNorm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  return isHalf(x) ? HalfLayerNorm::apply(x, gain, bias, epsilon)
                   : at::layer_norm(x, {x.size(-1)}, gain, bias, epsilon);
}

Tensor gelu(const Tensor& x, const char* approximation) {
  return isHalf(x) ? HalfGelu::apply(x, std::string(approximation)) : at::gelu(x, approximation);
}

Tensor tanh(const Tensor& x) { return isHalf(x) ? HalfTanh::apply(x) : at::tanh(x); }

Tensor embedding(const Tensor& table, const Tensor& indices) {
  return isHalf(table) ? HalfEmbedding::apply(table, indices) : at::embedding(table, indices);
}

}  // namespace weft::train::ops
