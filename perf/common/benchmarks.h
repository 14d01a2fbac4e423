// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include "perf/common/exit_code.h"
#include "perf/common/program.h"

namespace weft::tools {

// What main() of a program of Google Benchmark returns.
inline int runBenchmarks(const char* program, int argc, char** argv) {
  return runProgram(program, [&]() {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return kExitUsage;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return kExitHealthy;
  });
}

}  // namespace weft::tools
