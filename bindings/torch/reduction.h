// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/weft.hpp>

#include "elements.h"

namespace weft::pytorch {

// What torch's ReduceOp asks of weft for tensors of one type.
struct Reduction {
  weftRedOp_t op = weftSum;
  bool isScaled = false;
  double factor = 1;  // of this rank, if it is
};

// Refuses what has no meaning for the type. Sums of bool are "any", products "all", as with NCCL.
Reduction reductionOf(const char* call, const c10d::ReduceOp& op, const at::Tensor& tensor);

// The operation as a call takes it. Makes and frees those with a factor: on the thread that runs the call.
class Operation {
 public:
  Operation(const Reduction& reduction, weftDataType_t type, weftComm_t comm);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  operator weftRedOp_t() const { return op_; }

 private:
  weftRedOp_t op_;
  weftComm_t comm_;
  bool owned_;
};

}  // namespace weft::pytorch
