// SPDX-License-Identifier: Apache-2.0
#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/halves.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

using F16Packet = Float16<hn::ScalableTag<float>>;
using BF16Packet = BFloat16<hn::ScalableTag<uint32_t>>;

Kernels resolveHalves(DType type, RedOp op) {
  return type == DType::F16 ? kernelsOf<F16Packet>(op) : kernelsOf<BF16Packet>(op);
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::reduce {

HWY_EXPORT(resolveHalves);

Kernels halfKernels(DType type, RedOp op) { return HWY_DYNAMIC_DISPATCH(resolveHalves)(type, op); }

}  // namespace weft::reduce
#endif
