// SPDX-License-Identifier: Apache-2.0
#include "tools/train/become_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

struct Choice {
  const char* aten;
  const char* openblas;
};

Choice choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return {"avx512", "SkylakeX"};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"avx2", "Haswell"};
#endif
  return {nullptr, nullptr};  // what the libraries detect is the best guess
}

void chooseMathKernels() {
  const Choice choice = choose();
  if (choice.aten == nullptr) return;
  setenv("ATEN_CPU_CAPABILITY", choice.aten, 0);
  setenv("OPENBLAS_CORETYPE", choice.openblas, 0);
}

void configureMathLibraries() {
  chooseMathKernels();
  setenv("OMP_WAIT_POLICY", "passive", 0);
}

}  // namespace

void becomeRank(char** argv) {
  configureMathLibraries();
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("weft-train-rank");
  execv(program.c_str(), argv);
  throw Failure(Exit::kConfiguration,
                fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

}  // namespace weft::train
