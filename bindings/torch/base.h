// SPDX-License-Identifier: Apache-2.0
//
// What differs between versions of PyTorch, from 1.13 on. Since 2.0 a ProcessGroup holds Backends, one a kind of device;
// before, each ProcessGroup was one. What weft overrides has the same name in both; what a version does not know yet
// is declared without `override` in process_group.h, and is never called there.
#pragma once

#include <c10/core/Allocator.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace weft::pytorch {

#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

using Work = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using Milliseconds = std::chrono::milliseconds;

// The tensors that hold the factor of a PREMUL_SUM: none where it is a number. 1.13 had a list of them.
inline Tensors factorsOf(const c10d::NCCLPreMulSumSupplement& given) {
#if TORCH_VERSION_MAJOR >= 2
  return given.tensor_factor.defined() ? Tensors{given.tensor_factor} : Tensors{};
#else
  return given.tensor_factors;
#endif
}

// c10::Allocator, whose allocate() was const until 2.3, and which says since then how blocks are copied.
class Allocator : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  c10::DataPtr allocate(std::size_t bytes) final { return make(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const final {
    default_copy_data(to, from, bytes);
  }
#else
  c10::DataPtr allocate(std::size_t bytes) const final { return make(bytes); }
#endif

 private:
  virtual c10::DataPtr make(std::size_t bytes) const = 0;
};

}  // namespace weft::pytorch
