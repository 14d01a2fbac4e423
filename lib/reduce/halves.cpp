// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/halves.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "reduce/fold-inl.h"
#include "reduce/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace weft::HWY_NAMESPACE {

using F16Packet = Float16<hn::ScalableTag<float>>;
using BF16Packet = BFloat16<hn::ScalableTag<uint32_t>>;

FoldFn resolveHalfFold(DType type, RedOp op) {
  return type == DType::F16 ? floatKernel<F16Packet>(op) : floatKernel<BF16Packet>(op);
}

SpreadFn resolveHalfSpread(DType type) {
  return type == DType::F16 ? spreadFloats<F16Packet, Sum> : spreadFloats<BF16Packet, Sum>;
}

ScaleFn resolveHalfScale(DType type) {
  return type == DType::F16 ? scaleFloats<F16Packet> : scaleFloats<BF16Packet>;
}

}  // namespace weft::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(resolveHalfFold);
HWY_EXPORT(resolveHalfSpread);
HWY_EXPORT(resolveHalfScale);

FoldFn halfFold(DType type, RedOp op) { return HWY_DYNAMIC_DISPATCH(resolveHalfFold)(type, op); }
SpreadFn halfSpread(DType type) { return HWY_DYNAMIC_DISPATCH(resolveHalfSpread)(type); }
ScaleFn halfScale(DType type) { return HWY_DYNAMIC_DISPATCH(resolveHalfScale)(type); }

}  // namespace weft
#endif
