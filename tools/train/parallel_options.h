// SPDX-License-Identifier: Apache-2.0
// The part of the command line that cuts a model among ranks.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/train/options.h"

namespace weft::train {

void addParallelism(CLI::App& app, Options& options);

}  // namespace weft::train
