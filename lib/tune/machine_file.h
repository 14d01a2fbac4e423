// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tune/calibration.h"

namespace weft::tune {

// A calibration that outlives its process: one small text file for each kind of machine and version
// of weft. It is a convenience only. Whatever is wrong with it (garbage, another machine's, another
// user's, writable by others, a device) it is as if it were not there, and a place that cannot be
// written is left alone.

// $XDG_CACHE_HOME/weft or ~/.cache/weft, and a name from the machine; "" if there is no such place.
std::string machineFilePath();

// What makes numbers hold: processor, version and build of weft.
std::string machineKey();

bool loadCalibration(const std::string& path, std::string_view key, Calibration* calibration);

// Writes beside it and renames, so that readers and other writers see one whole file or another.
// Makes the last folder of the path, closed to others, if its parent exists. False, and nothing is
// changed, if a file of another kind is there.
bool saveCalibration(const std::string& path, std::string_view key, const Calibration& calibration);

// A recorded machine is a file that somebody wrote on purpose, for any machine: first the line
// "weft recorded machine 2", then "name value" lines, and comments from # to the end of the line.
// It is taken as it stands and never written to.
bool isRecorded(const std::string& path);
Status loadRecorded(const std::string& path, Machine* machine);

}  // namespace weft::tune
