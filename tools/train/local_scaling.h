// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"

namespace weft::train {

// The scaling table of this host: each run of it is this program with that many ranks of its own. `argv` is the command
// line; all of it that is not the table's own is used. Returns the exit code.
int scaleOnThisHost(const Options& options, char** argv);

}  // namespace weft::train
