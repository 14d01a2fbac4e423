// SPDX-License-Identifier: Apache-2.0
// The files that programs write for their users. All of them keep the same rules: a regular file is
// replaced as a whole when its content is complete; links are followed; a device or a fifo is
// written to and stays what it is; "-" is standard output. Whether it can be written is tried
// before the work, so that nobody waits for a result that is then lost.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

namespace weft::tools {

// Programs end with kExitCannotWrite.
class CannotWrite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ReportFile {
 public:
  explicit ReportFile(std::string path);  // throws CannotWrite

  void write(const std::string& content) const;  // throws CannotWrite

  // A regular file, or one that is not there yet: each write() replaces it. Anything else gets the
  // content of each write() after that of the one before.
  bool isReplaced() const { return !target_.empty(); }
  const std::string& target() const { return target_; }  // of a file that is replaced: no link

 private:
  void replace(const std::string& content) const;
  void append(const std::string& content) const;

  std::string path_;
  std::string target_;  // empty: not replaced
};

// A report that is read while it grows, by the same rules, but that a regular file is emptied, or
// continued, at once.
class ReportStream {
 public:
  enum class Start { kEmpty, kAtItsEnd };
  explicit ReportStream(std::string path, Start start = Start::kEmpty);  // throws CannotWrite
  void write(const std::string& part) const;  // to the reader at once; throws CannotWrite

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// Where a program speaks to people: standard output, or standard error where one of these reports
// goes to standard output.
std::FILE* besides(std::initializer_list<std::string> reports);

}  // namespace weft::tools
