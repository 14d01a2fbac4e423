// SPDX-License-Identifier: Apache-2.0
// What makes a batch system act on the tools' exit codes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft::doctor {

// For "aws-batch", "slurm" or "k8s", with comments that say where it belongs; nothing for any
// other.
std::optional<std::string> schedulerConfig(std::string_view scheduler);

}  // namespace weft::doctor
