// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/weft.h>

#include <string>

#include "base.h"

namespace weft::pytorch {

// A tensor as weft sees it. Complex numbers are pairs of reals, bool is uint8; types that weft has no sums of (int16,
// quantized ones) are moved as bytes.
struct Elements {
  void* data = nullptr;
  std::size_t count = 0;  // of `type`
  weftDataType_t type = weftUint8;
  std::size_t bytes = 0;
};

// std::invalid_argument, which Python sees as ValueError: "weft:all_reduce: <what>; fix: <fix>".
[[noreturn]] void refuse(const char* call, const std::string& what, const std::string& fix);

// Of a tensor that weft can read and write where it is: dense, contiguous, in host memory. Others are refused.
Elements elementsOf(const char* call, const at::Tensor& tensor);

// The one tensor of a list: this back end has one device a rank.
at::Tensor& only(const char* call, const char* which, std::vector<at::Tensor>& tensors);
Tensors& onlyList(const char* call, const char* which, std::vector<Tensors>& lists);

// One tensor for each rank, of the type of `like`; elementsOf() each.
std::vector<Elements> oneForEach(const char* call, const char* which, const Tensors& tensors,
                                 int ranks, const at::Tensor& like);
// Refuses tensors of different types.
void checkType(const char* call, const char* which, const at::Tensor& tensor,
               const at::Tensor& like);
void checkRoot(const char* call, std::int64_t root, int ranks);

// "float32 tensor of shape [2, 3]"
std::string describe(const at::Tensor& tensor);

}  // namespace weft::pytorch
