// SPDX-License-Identifier: Apache-2.0
#include "tools/train/math_libraries.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>

namespace weft::train {
namespace {

// libtorch names its kernels only in a text.
std::string atenKernels() {
  const std::string text = at::show_config(), key = "CPU capability usage: ";
  const size_t at = text.find(key);
  if (at == std::string::npos) return "default";
  return text.substr(at + key.size(), text.find('\n', at) - at - key.size());
}

template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void setComputeThreads(int threads) {
  at::set_num_threads(threads);
  if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);  // may be set once
  if (auto* set = find<void(int)>("openblas_set_num_threads")) set(threads);
  // What these libraries free they allocate anew in every step: keeping it saves the page faults, as it does for large
  // tensors (tensor_memory.h).
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int actualComputeThreads() {
  int threads = at::get_num_threads();
  if (auto* get = find<int()>("openblas_get_num_threads")) threads = std::min(threads, get());
  return threads;
}

std::string describeMathLibraries() {
  std::string text = "ATen " + atenKernels();
  if (auto* name = find<char*()>("openblas_get_corename")) {
    text += std::string(", OpenBLAS ") + name();
  } else {
    text +=
        ", no OpenBLAS (with Debian's reference BLAS fp32 is slow; install libopenblas0-openmp)";
  }
  return text;
}

}  // namespace weft::train
