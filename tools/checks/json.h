// SPDX-License-Identifier: Apache-2.0
// Reports as JSON: for machines, and to gather them on rank 0.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "tools/checks/host.h"

namespace weft::checks {

nlohmann::json toJson(const Finding& finding);
nlohmann::json toJson(const HostReport& report);

// Nothing if it is not what toJson writes: a peer's word is not trusted.
std::optional<Finding> findingFromJson(const nlohmann::json& json);
std::optional<HostReport> reportFromJson(const nlohmann::json& json);

}  // namespace weft::checks
