// SPDX-License-Identifier: Apache-2.0
// Speed and bits of a run hang on which kernels libtorch and OpenBLAS pick. Both read an
// environment variable for that, and left alone both may pick badly: Debian's libtorch stays with
// AVX2, and its OpenBLAS falls back to SSE3 on processors that are newer than itself (4 times
// slower, measured).
#pragma once

#include <string>

namespace weft::train {

// Sets ATEN_CPU_CAPABILITY and OPENBLAS_CORETYPE, unless the user did, to what this processor
// supports. OpenBLAS reads its variable while it is loaded, before main(), so a process that had to
// set it replaces itself by a copy (same pid, arguments and descriptors); call this first, with
// main's arguments.
void pinMathLibraries(char** argv);

// Compute threads of this process, for libtorch and OpenBLAS alike. Call it once, before any
// computing.
void setComputeThreads(int threads);

// What was picked, for the head of a report, such as "ATen AVX512, OpenBLAS SkylakeX". Says so if
// the BLAS is the unoptimized reference.
std::string describeMathLibraries();

}  // namespace weft::train
