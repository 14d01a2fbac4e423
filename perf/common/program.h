// SPDX-License-Identifier: Apache-2.0
// How programs begin and end.
#pragma once

#include <weft/weft.h>

#include <functional>
#include <string>

namespace weft::tools {

// "weft-perf 0.1.0", for --version.
std::string versionOf(const char* program);

// What main() returns: the exit code of `work`, or of the exception that ended it, which is told.
// What was printed must have arrived, else the code is kExitCannotWrite unless there is a worse one.
int runProgram(const char* program, const std::function<int()>& work);

}  // namespace weft::tools
