// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/train/options.h"

namespace weft::train {

// Finds before the first step what would be found after the last: files of the options that cannot
// be written, and a checkpoint to go on from that is not there. Throws Failure.
void checkFiles(const Options& options);

// Whether a folder holds a checkpoint.
bool hasCheckpoint(const std::string& folder);

}  // namespace weft::train
