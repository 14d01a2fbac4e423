// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "formats/limits.h"
#include "schedule/ir.h"

// Schedules of others, from files. What is read is proved by the verifier (verify/verify.h) before
// anybody gets it: links, deadlocks, results, races, and in and out being the same memory. What it
// proves is the serial program of each rank that weft runs, in which chunks that the file uses several
// times are places of their own; whether the file's blocks race on the machine that it was made for
// is not asked.
namespace weft::formats {

// Does a name of an algorithm mean a file: it has a folder, or ends with .xml or .json?
bool isScheduleFile(std::string_view name);

// By what a document begins with: MSCCL's XML, or MSCCL++'s JSON.
// InvalidArgument names the file, the line and the fix. Its name has the document's fingerprint, so
// that ranks whose files differ find out.
Status parseSchedule(std::string_view document, const std::string& file, const Limits& limits,
                     schedule::Schedule* out);

// Of a file of that name.
Status readSchedule(const std::string& file, schedule::Schedule* out);

// Of its bytes: equal on ranks that have the same file; of one that cannot be read "none".
std::string fingerprintOfFile(const std::string& file);

}  // namespace weft::formats
