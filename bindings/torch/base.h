// SPDX-License-Identifier: Apache-2.0
//
// What differs between versions of PyTorch: the class that a back end derives from. Since 2.0 a ProcessGroup holds
// Backends, one a kind of device; before, each ProcessGroup was one. All else that weft overrides has the same name.
#pragma once

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

}  // namespace weft::pytorch
