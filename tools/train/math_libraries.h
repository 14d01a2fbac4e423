// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace weft::train {

// Compute threads of this process, for libtorch and OpenBLAS alike. Call it once, before any
// computing.
void setComputeThreads(int threads);
// How many there are since then: fewer where a library has a limit of its own.
int actualComputeThreads();

// Which kernels were picked, for the head of a report, such as "ATen AVX512, OpenBLAS SkylakeX".
// Says so if the BLAS is the unoptimized reference.
std::string describeMathLibraries();

}  // namespace weft::train
