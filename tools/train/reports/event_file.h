// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: records of TFRecord (tensorflow/core/lib/io/record_writer.h), each an Event
// (tensorflow/core/util/event.proto). The seven fields that are written take fewer lines than a copy of
// that file for protobuf's compiler would.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perf/common/report_file.h"

namespace weft::train {

struct Scalar {
  std::string tag;  // "group/name"
  double value;     // written in single precision
};

// CRC-32C (RFC 3720, B.4), which guards the records, masked as the format wants it.
uint32_t crc32c(std::string_view bytes);
// A record of the file: length and data, each with its checksum.
std::string eventRecord(std::string_view event);
// The Events themselves. `seconds`: since 1970.
std::string versionEvent(double seconds);
std::string sessionStartEvent(double seconds, int64_t step);
std::string scalarsEvent(double seconds, int64_t step, const std::vector<Scalar>& scalars);

// One file of a folder, which grows with each call. A run that goes on writes another one beside those
// of the runs before it, and TensorBoard shows them as one.
class EventFile {
 public:
  // Makes the folder if there is none. From `firstStep` on, what files before this one say is
  // superseded: their run may have made more steps than it has saved. Throws tools::CannotWrite.
  EventFile(const std::string& folder, int64_t firstStep);

  void write(int64_t step, const std::vector<Scalar>& scalars) const;  // throws tools::CannotWrite

 private:
  tools::ReportStream file_;
};

// Makes the folder and tries whether a file can be written there. Throws tools::CannotWrite.
void checkEventFolder(const std::string& folder);

}  // namespace weft::train
