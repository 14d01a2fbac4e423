// SPDX-License-Identifier: Apache-2.0
// How the tools end. A batch system acts on these numbers (docs/operating.md), so all tools share
// them; they are those of sysexits.h where it has one.
#pragma once

#include <weft/weft.hpp>

namespace weft::tools {

constexpr int kExitHealthy = 0;
constexpr int kExitWrong = 1;         // wrong data, or slower than was asked for
constexpr int kExitUsage = 64;        // the command line: do not retry
constexpr int kExitMismatch = 65;     // the ranks or the input disagree: do not retry
constexpr int kExitBad = 69;          // a host, link or rank was found bad, and named: go elsewhere
constexpr int kExitInternal = 70;     // a bug of weft's: do not retry, keep the output
constexpr int kExitCannotStart = 71;  // a process could not be started
constexpr int kExitCannotWrite = 73;  // a report could not be written
constexpr int kExitLost = 75;         // a peer, the network or a host was lost: try again
constexpr int kExitAuthentication = 77;  // a rank did not know the job's secret: do not retry
constexpr int kExitConfiguration = 78;   // this machine or its settings: do not retry
constexpr int kExitKilled = 128 + 9;     // by SIGKILL, as where memory ran out: try again

// What a failed call of weft means for the job.
int exitCodeOf(weftResult_t result);

// The same of one that has thrown: a variable that is refused is no command line.
int exitCodeOf(const Error& error);

}  // namespace weft::tools
