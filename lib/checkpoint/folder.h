// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "checkpoint/index.h"

namespace weft::checkpoint {

// A folder of checkpoints. Each is a folder of its own, step-00000012, which is written as
// step-00000012.tmp and renamed when all of it is on disk. `latest` holds the name of the last one
// and is replaced after that. The last two are kept. One job at a time.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  // Makes it and an empty folder to write in, and removes what writers that died have left: once
  // there is a last one, however many die in a row, there are three folders at most.
  Status prepare(std::int64_t steps) const;
  std::string aside(std::int64_t steps) const;
  // Makes the last checkpoint of what lies aside, with this index. All its files are on disk.
  Status commit(CheckpointIndex index) const;
  void drop(std::int64_t steps) const;  // what lies aside

  // The path of the last checkpoint, or of the folder if it is itself one. Where `latest` names none that
  // is there, as somebody has moved it away, the newest that is left counts.
  Status latest(std::string* checkpoint) const;

 private:
  std::string nameOfLatest() const;
  std::string nameOfNewest() const;
  std::string freeName(std::int64_t steps) const;
  void prune(const std::string& last, const std::string& previous) const;

  std::string path_;
};

}  // namespace weft::checkpoint
