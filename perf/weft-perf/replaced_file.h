// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace weft::perf {

// The report cannot be written: kExitCannotWrite.
class CannotWrite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file that is replaced as a whole when its content is complete. Whether it can be is tried at
// once, so that nobody waits for a run whose report is then lost.
class ReplacedFile {
 public:
  explicit ReplacedFile(std::string path);  // throws CannotWrite
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  void replace(const std::string& content);  // throws CannotWrite

 private:
  std::string path_;
  std::string temporary_;
};

}  // namespace weft::perf
