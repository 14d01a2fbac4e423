// SPDX-License-Identifier: Apache-2.0
#include "perf/common/program.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "perf/common/exit_code.h"
#include "perf/common/report_file.h"

namespace weft::tools {
namespace {

int tell(const char* program, const char* what, int exitCode) {
  std::fprintf(stderr, "%s: %s\n", program, what);
  return exitCode;
}

int exitCodeOfWork(const char* program, const std::function<int()>& work) {
  try {
    return work();
  } catch (const CannotWrite& error) {
    return tell(program, error.what(), kExitCannotWrite);
  } catch (const std::exception& error) {
    // A line that standard output did not take is such an exception, and no bug.
    return std::ferror(stdout) != 0 ? kExitCannotWrite : tell(program, error.what(), kExitInternal);
  }
}

}  // namespace

std::string versionOf(const char* program) {
  return std::string(program) + ' ' + std::to_string(WEFT_MAJOR) + '.' +
         std::to_string(WEFT_MINOR) + '.' + std::to_string(WEFT_PATCH);
}

int runProgram(const char* program, const std::function<int()>& work) {
  const int exitCode = exitCodeOfWork(program, work);
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (arrived) return exitCode;
  tell(program, "cannot write standard output; what it printed is not complete", kExitCannotWrite);
  return exitCode == kExitHealthy || exitCode == kExitInternal ? kExitCannotWrite : exitCode;
}

}  // namespace weft::tools
