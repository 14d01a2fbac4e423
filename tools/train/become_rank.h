// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::train {

// Replaces this process by weft-train-rank, the program beside it that computes: same pid,
// arguments and descriptors. Throws Failure if it cannot.
//
// Speed and bits of a run hang on which kernels libtorch and OpenBLAS pick, and left alone both
// pick badly: Debian's libtorch stays with AVX2, and its OpenBLAS falls back to SSE3 on processors
// that are newer than itself (4 times slower, measured). So ATEN_CPU_CAPABILITY and
// OPENBLAS_CORETYPE are set to what this processor supports, unless the user did. OpenBLAS reads
// its variable while it is loaded, before main(): that, and the half second that loading libtorch
// takes, is why there are two programs.
[[noreturn]] void becomeRank(char** argv);

}  // namespace weft::train
