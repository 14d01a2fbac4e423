// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/checks/host.h"

namespace weft::doctor {

// One sentence: may a job run here, and what is in the way, or what carries it.
std::string verdictOf(const checks::HostReport& report);

// The verdict, findings worst first, and the facts by what stands before their first dot.
std::string toText(const checks::HostReport& report);
nlohmann::json toJson(const checks::HostReport& report);

}  // namespace weft::doctor
