// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/floats.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

template <class T>
using Floats = Native<hn::ScalableTag<T>>;

Kernels resolveFloats(DType type, RedOp op) {
  switch (type) {
    case DType::F16:
      return kernelsOf<Float16<hn::ScalableTag<float>>>(op);
    case DType::BF16:
      return kernelsOf<BFloat16<hn::ScalableTag<uint32_t>>>(op);
    case DType::F32:
      return kernelsOf<Floats<float>>(op);
    default:
      return kernelsOf<Floats<double>>(op);
  }
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(resolveFloats);

Kernels floatKernels(DType type, RedOp op) { return HWY_DYNAMIC_DISPATCH(resolveFloats)(type, op); }

}  // namespace weft::reduce
#endif
