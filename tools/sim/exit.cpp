// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/exit.h"

#include <fmt/format.h>

#include <cstdio>

#include "perf/common/exit_code.h"

namespace weft::simulator {

int tell(const Status& status) {
  fmt::print(stderr, "weft-sim: {}\n", status.text());
  switch (status.code()) {
    case Code::InvalidUsage:
      return tools::kExitUsage;
    case Code::InvalidArgument:
      return tools::kExitMismatch;
    default:
      return tools::kExitInternal;
  }
}

std::optional<tools::ReportFile> fileFor(const std::string& name) {
  if (name.empty()) return {};
  return tools::ReportFile(name);
}

}  // namespace weft::simulator
