// SPDX-License-Identifier: Apache-2.0
#include "reduction.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <array>
#include <cstring>

namespace weft::pytorch {
namespace {

constexpr std::array kNames = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                               "BAND", "BOR", "BXOR",    "PREMUL_SUM"};

[[noreturn]] void refuseOp(const char* call, c10d::ReduceOp::RedOpType op, const at::Tensor& tensor,
                           const char* fix) {
  refuse(call, std::string("ReduceOp.") + kNames.at(op) + " of a " + describe(tensor), fix);
}

// One byte, 0 or 1: "any" and "all" are its largest and smallest.
weftRedOp_t ofBools(const char* call, c10d::ReduceOp::RedOpType op, const at::Tensor& tensor) {
  switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
      return weftMax;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
      return weftMin;
    case c10d::ReduceOp::BXOR:
      return weftBxor;
    default:
      refuseOp(call, op, tensor, "convert it to a type of numbers first");
  }
}

weftRedOp_t ofNumbers(const char* call, c10d::ReduceOp::RedOpType op, const at::Tensor& tensor) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return weftSum;
    case c10d::ReduceOp::AVG:
      return weftAvg;
    case c10d::ReduceOp::PRODUCT:
      return weftProd;
    case c10d::ReduceOp::MIN:
      return weftMin;
    case c10d::ReduceOp::MAX:
      return weftMax;
    case c10d::ReduceOp::BAND:
      return weftBand;
    case c10d::ReduceOp::BOR:
      return weftBor;
    case c10d::ReduceOp::BXOR:
      return weftBxor;
    default:
      refuseOp(call, op, tensor, "use one of torch.distributed.ReduceOp");
  }
}

bool isBitwise(c10d::ReduceOp::RedOpType op) {
  return op == c10d::ReduceOp::BAND || op == c10d::ReduceOp::BOR || op == c10d::ReduceOp::BXOR;
}

double factorOf(const char* call, const c10d::ReduceOp& op) {
  const auto* given = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  if (given == nullptr)
    refuse(call, "PREMUL_SUM has no factor", "make it by torch.distributed._make_nccl_premul_sum");
  const Tensors factors = factorsOf(*given);
  if (factors.empty()) return given->double_factor;
  const at::Tensor& factor = factors.front();
  if (factors.size() != 1 || factor.numel() != 1 || !factor.device().is_cpu())
    refuse(call, "PREMUL_SUM takes one factor", "pass a number, or a CPU tensor of one element");
  return factor.item<double>();
}

template <class T, class From = T>
weftResult_t make(weftRedOp_t* op, double factor, weftDataType_t type, weftComm_t comm) {
  const T scalar = static_cast<T>(static_cast<From>(factor));
  return weftRedOpCreatePreMulSum(op, &scalar, type, comm);
}

weftResult_t makeScaled(weftRedOp_t* op, double factor, weftDataType_t type, weftComm_t comm) {
  switch (type) {
    case weftInt8:
      return make<std::int8_t>(op, factor, type, comm);
    case weftUint8:
      return make<std::uint8_t>(op, factor, type, comm);
    case weftInt32:
      return make<std::int32_t>(op, factor, type, comm);
    case weftInt64:
      return make<std::int64_t>(op, factor, type, comm);
    case weftFloat16:
      return make<c10::Half, float>(op, factor, type, comm);
    case weftBfloat16:
      return make<c10::BFloat16, float>(op, factor, type, comm);
    case weftFloat64:
      return make<double>(op, factor, type, comm);
    default:
      return make<float>(op, factor, weftFloat32, comm);
  }
}

bool hasNoSums(at::ScalarType type) { return type == at::kShort || at::isQIntType(type); }

}  // namespace

Reduction reductionOf(const char* call, const c10d::ReduceOp& op, const at::Tensor& tensor) {
  if (op.op_ >= kNames.size())
    refuse(call, "got a ReduceOp that is none", "use one of torch.distributed.ReduceOp");
  if (hasNoSums(tensor.scalar_type()))
    refuseOp(call, op.op_, tensor, "convert it to int32 first: weft adds no such type");
  if (tensor.scalar_type() == at::kBool) return {.op = ofBools(call, op.op_, tensor)};
  const bool isLinear = op.op_ == c10d::ReduceOp::SUM || op.op_ == c10d::ReduceOp::AVG ||
                        op.op_ == c10d::ReduceOp::PREMUL_SUM;
  if (tensor.is_complex() && !isLinear)
    refuseOp(call, op.op_, tensor, "use SUM, AVG or PREMUL_SUM, which treat parts alike");
  if (isBitwise(op.op_) && tensor.is_floating_point())
    refuseOp(call, op.op_, tensor, "pass integers, or tensor.view() of an integer type");
  if (op.op_ == c10d::ReduceOp::PREMUL_SUM) return {.isScaled = true, .factor = factorOf(call, op)};
  return {.op = ofNumbers(call, op.op_, tensor)};
}

Operation::Operation(const Reduction& reduction, weftDataType_t type, weftComm_t comm)
    : op_(reduction.op), comm_(comm), owned_(reduction.isScaled) {
  if (owned_) check(makeScaled(&op_, reduction.factor, type, comm), comm);
}

Operation::~Operation() {
  if (owned_) static_cast<void>(weftRedOpDestroy(op_, comm_));
}

}  // namespace weft::pytorch
