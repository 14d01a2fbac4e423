// SPDX-License-Identifier: Apache-2.0
// What the user sees, and what machines read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/health/evidence.h"

namespace weft::health {

// The verdict in a sentence.
std::string verdict(const Evidence& evidence, const std::vector<checks::Finding>& findings);

// Verdict, findings, tables.
std::string reportText(const Evidence& evidence, const std::vector<checks::Finding>& findings);

// The same and every figure. Times in microseconds, rates in GB/s of 10^9 bytes.
nlohmann::json reportJson(const Evidence& evidence, const std::vector<checks::Finding>& findings,
                          int exitCode);

}  // namespace weft::health
