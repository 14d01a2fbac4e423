// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tune/machine.h"

namespace weft {

// A calibration that outlives its process: one small text file for each kind of machine and version
// of weft. It is a convenience only. Whatever is wrong with it (garbage, another machine's, another
// user's, writable by others, a device) it is as if it were not there, and a place that cannot be
// written is left alone.

// $XDG_CACHE_HOME/weft or ~/.cache/weft, and a name from the machine; "" if there is no such place.
std::string machineFilePath();

// What makes numbers hold: processor, version and build of weft.
std::string machineKey();

bool loadMachine(const std::string& path, std::string_view key, Machine* machine);

// Writes beside it and renames, so that readers and other writers see one whole file or another.
// Makes the last folder of the path, closed to others, if its parent exists.
bool saveMachine(const std::string& path, std::string_view key, const Machine& machine);

}  // namespace weft
