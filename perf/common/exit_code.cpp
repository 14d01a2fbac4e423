// SPDX-License-Identifier: Apache-2.0
#include "perf/common/exit_code.h"

namespace weft::tools {

int exitCodeOf(weftResult_t result) {
  switch (result) {
    case weftSuccess:
      return kExitHealthy;
    case weftInvalidArgument:
    case weftInvalidUsage:
      return kExitUsage;
    case weftMismatch:
      return kExitMismatch;
    case weftRemoteError:
    case weftTimeout:
    case weftAborted:
      return kExitLost;
    case weftAuthentication:
      return kExitAuthentication;
    case weftSystemError:
    case weftOutOfMemory:
      return kExitConfiguration;
    default:
      return kExitInternal;
  }
}

int exitCodeOf(const Error& error) {
  return error.info().variable.empty() ? exitCodeOf(error.result()) : kExitConfiguration;
}

}  // namespace weft::tools
