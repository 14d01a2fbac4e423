// SPDX-License-Identifier: Apache-2.0
// What options say about each other.
#pragma once

#include "tools/train/options.h"

namespace weft::train {

// Throws Failure (Exit::kUsage) for what cannot be, however many ranks there are, with the fix.
void validate(const Options& options);

// Does --keep name it?
bool isKept(const Options& options, const char* what);

}  // namespace weft::train
