// SPDX-License-Identifier: Apache-2.0
// Schedules of others want readers of XML and JSON, and the verifier.
#include "formats/read.h"

namespace weft::formats {

bool isScheduleFile(std::string_view name) {
  return name.find('/') != name.npos || name.ends_with(".xml") || name.ends_with(".json");
}

Status readSchedule(const std::string& file, schedule::Schedule*) {
  return Status::error(Code::InvalidArgument, file,
                       ": weft_amalgamated.cpp reads no schedules from files; fix: an algorithm by "
                       "its name, or libweft");
}

std::string fingerprintOfFile(const std::string&) { return "none"; }

}  // namespace weft::formats
