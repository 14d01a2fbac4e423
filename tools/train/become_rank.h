// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::train {

// Replaces this process by weft-train-rank, the program beside it that computes, or with --ranks
// forks those that do: same pid, arguments and descriptors. Throws Failure if it cannot.
//
// It also sets, unless the user did, what the math libraries read from the environment:
//   ATEN_CPU_CAPABILITY, OPENBLAS_CORETYPE  the kernels, which both speed and bits of a run hang
//   on. Left
//       alone both pick badly: Debian's libtorch stays with AVX2, and its OpenBLAS falls back to
//       SSE3 on processors that are newer than itself (4 times slower, measured).
//   OMP_WAIT_POLICY=passive  compute threads that wait give way to weft's streams and to other
//   processes
//       (spinning ones made a step 50 times slower on a busy machine, measured).
// OpenBLAS and OpenMP read theirs while they are loaded, before main(): that, and the half second
// that loading libtorch takes, is why there are two programs.
[[noreturn]] void becomeRank(char** argv);

}  // namespace weft::train
