// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "perf/common/report_file.h"

namespace weft::simulator {

// Says that what was asked for cannot be had, or that the input is bad; the exit code.
int tell(const Status& status);

// None without a name.
std::optional<tools::ReportFile> fileFor(const std::string& name);

}  // namespace weft::simulator
