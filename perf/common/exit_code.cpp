// SPDX-License-Identifier: Apache-2.0
#include "perf/common/exit_code.h"

#include <algorithm>

namespace weft::tools {
namespace {

// "WEFT_ROOT is", "RANK=x", and of another rank: "rank 0: WEFT_LANES=x".
bool beginsWithVariable(std::string_view text) {
  if (text.starts_with("rank ")) text.remove_prefix(std::min(text.find(": "), text.size() - 2) + 2);
  const std::string_view name =
      text.substr(0, text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"));
  if (name.empty() || name.size() == text.size()) return false;
  return text[name.size()] == '=' || name.find('_') != std::string_view::npos;
}

}  // namespace

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

int exitCodeOf(weftResult_t result, std::string_view text) {
  return result == weftInvalidArgument && beginsWithVariable(text) ? kExitConfiguration
                                                                   : exitCodeOf(result);
}

}  // namespace weft::tools
