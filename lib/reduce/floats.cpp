// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/floats.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "reduce/fold-inl.h"
#include "reduce/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace weft::HWY_NAMESPACE {

template <class T>
using Floats = Native<hn::ScalableTag<T>>;

FoldFn resolveFloatFold(DType type, RedOp op) {
  return type == DType::F32 ? floatKernel<Floats<float>>(op) : floatKernel<Floats<double>>(op);
}

SpreadFn resolveFloatSpread(DType type) {
  return type == DType::F32 ? spreadFloats<Floats<float>, Sum> : spreadFloats<Floats<double>, Sum>;
}

ScaleFn resolveFloatScale(DType type) {
  return type == DType::F32 ? scaleFloats<Floats<float>> : scaleFloats<Floats<double>>;
}

}  // namespace weft::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(resolveFloatFold);
HWY_EXPORT(resolveFloatSpread);
HWY_EXPORT(resolveFloatScale);

FoldFn floatFold(DType type, RedOp op) { return HWY_DYNAMIC_DISPATCH(resolveFloatFold)(type, op); }
SpreadFn floatSpread(DType type) { return HWY_DYNAMIC_DISPATCH(resolveFloatSpread)(type); }
ScaleFn floatScale(DType type) { return HWY_DYNAMIC_DISPATCH(resolveFloatScale)(type); }

}  // namespace weft
#endif
