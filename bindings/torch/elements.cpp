// SPDX-License-Identifier: Apache-2.0
#include "elements.h"

#include <c10/core/ScalarType.h>

#include <stdexcept>

namespace weft::pytorch {
namespace {

struct Layout {
  weftDataType_t type;
  std::size_t each;  // so many of them to an element
};

Layout layoutOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBool:
    case at::kByte:
      return {weftUint8, 1};
    case at::kChar:
      return {weftInt8, 1};
    case at::kInt:
      return {weftInt32, 1};
    case at::kLong:
      return {weftInt64, 1};
    case at::kHalf:
      return {weftFloat16, 1};
    case at::kBFloat16:
      return {weftBfloat16, 1};
    case at::kFloat:
      return {weftFloat32, 1};
    case at::kDouble:
      return {weftFloat64, 1};
    case at::kComplexHalf:
      return {weftFloat16, 2};
    case at::kComplexFloat:
      return {weftFloat32, 2};
    case at::kComplexDouble:
      return {weftFloat64, 2};
    default:
      return {weftUint8, static_cast<std::size_t>(tensor.element_size())};
  }
}

void checkMemory(const char* call, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(call, "got an undefined tensor", "pass one that has memory");
  if (tensor.layout() != at::kStrided)
    refuse(call, "got a sparse " + describe(tensor),
           "pass tensor.to_dense(), or all_gather its indices() and values()");
  if (!tensor.device().is_cpu())
    refuse(call, "got a tensor on " + tensor.device().str() + ", and weft moves host memory",
           "pass tensor.cpu(), or make the group of another backend");
  if (!tensor.is_contiguous())
    refuse(call, "got a non-contiguous " + describe(tensor), "pass tensor.contiguous()");
  if (tensor.is_conj() || tensor.is_neg())
    refuse(call, "got a " + describe(tensor) + " that is a view with another sign than its memory",
           "pass tensor.resolve_conj().resolve_neg()");
}

}  // namespace

void refuse(const char* call, const std::string& what, const std::string& fix) {
  throw std::invalid_argument("weft:" + std::string(call) + ": " + what + "; fix: " + fix);
}

// Without a stream: under a wheel of torch 2.11 one ended in SIGSEGV, probably of the other libstdc++ that it has parts of.
std::string describe(const at::Tensor& tensor) {
  std::string shape;
  for (const std::int64_t size : tensor.sizes())
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  return std::string(c10::toString(tensor.scalar_type())) + " tensor of shape [" + shape + "]";
}

Elements elementsOf(const char* call, const at::Tensor& tensor) {
  checkMemory(call, tensor);
  const Layout layout = layoutOf(tensor);
  const auto elements = static_cast<std::size_t>(tensor.numel());
  return {tensor.data_ptr(), elements * layout.each, layout.type,
          elements * static_cast<std::size_t>(tensor.element_size())};
}

at::Tensor& only(const char* call, const char* which, Tensors& tensors) {
  if (tensors.size() != 1)
    refuse(call, "got a list of " + std::to_string(tensors.size()) + " " + which + " tensors",
           "pass one tensor: a rank of weft has one device");
  return tensors.front();
}

Tensors& onlyList(const char* call, const char* which, std::vector<Tensors>& lists) {
  if (lists.size() != 1)
    refuse(call, "got " + std::to_string(lists.size()) + " lists of " + which + " tensors",
           "pass one list: a rank of weft has one device");
  return lists.front();
}

void checkType(const char* call, const char* which, const at::Tensor& tensor,
               const at::Tensor& like) {
  if (tensor.scalar_type() == like.scalar_type()) return;
  refuse(call,
         std::string("got as ") + which + " a " + describe(tensor) + " beside a " + describe(like),
         "pass tensors of one dtype");
}

std::vector<Elements> oneForEach(const char* call, const char* which, const Tensors& tensors,
                                 int ranks, const at::Tensor& like) {
  if (tensors.size() != static_cast<std::size_t>(ranks))
    refuse(call,
           "got " + std::to_string(tensors.size()) + " " + which + " tensors for " +
               std::to_string(ranks) + " ranks",
           "pass one for each rank of the group");
  std::vector<Elements> all;
  all.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    all.push_back(elementsOf(call, tensor));
    checkType(call, which, tensor, like);
  }
  return all;
}

void checkRoot(const char* call, std::int64_t root, int ranks) {
  if (root >= 0 && root < ranks) return;
  refuse(
      call,
      "the root is " + std::to_string(root) + " in a group of " + std::to_string(ranks) + " ranks",
      "pass a rank of the group");
}

}  // namespace weft::pytorch
