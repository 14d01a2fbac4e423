// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/rotation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "tools/train/models/rotary.h"

namespace weft::train {
namespace {

using at::Tensor;

constexpr double kBase = 10000.0;

// One a pair of rows, in radians per position.
Tensor frequencies(int64_t headWidth, Rotary form) {
  const int64_t rotary = rotaryRows(headWidth);
  const Tensor exponents = at::arange(0, rotary, 2, at::kDouble) / static_cast<double>(rotary);
  const Tensor partial = at::pow(kBase, -exponents);
  if (form == Rotary::kPartial) return partial;
  return at::cat({partial, at::zeros({(headWidth - rotary) / 2}, at::kDouble)});
}

}  // namespace

Rotation::Rotation(int64_t length, int64_t headWidth, Rotary form, Pairs pairs) : pairs_(pairs) {
  const Tensor perPosition = frequencies(headWidth, form);
  const Tensor angles = at::arange(length, at::kDouble).unsqueeze(1) * perPosition;
  turned_ = 2 * perPosition.size(0);
  cosine_ = angles.cos().to(at::kFloat);
  sine_ = angles.sin().to(at::kFloat);
}

Tensor Rotation::operator()(const Tensor& x) const {
  const int64_t half = turned_ / 2;
  const bool neighbours = pairs_ == Pairs::kNeighbours;
  const Tensor first = neighbours ? x.slice(-1, 0, turned_, 2) : x.narrow(-1, 0, half);
  const Tensor second = neighbours ? x.slice(-1, 1, turned_, 2) : x.narrow(-1, half, half);
  const Tensor rest = x.narrow(-1, turned_, x.size(-1) - turned_);
  const Tensor turnedFirst = first * cosine_ - second * sine_;  // in fp32
  const Tensor turnedSecond = second * cosine_ + first * sine_;
  const Tensor a = turnedFirst.to(x.scalar_type()), b = turnedSecond.to(x.scalar_type());
  if (neighbours) return at::cat({at::stack({a, b}, -1).flatten(-2), rest}, -1);
  return at::cat({a, b, rest}, -1);
}

}  // namespace weft::train
