// SPDX-License-Identifier: Apache-2.0
#include "tools/train/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/train/failure.h"

namespace weft::train {

OutputFile::OutputFile(const std::string& name)
    : name_(name), aside_(name + ".part"), file_(std::fopen(aside_.c_str(), "wbe")) {
  if (!file_) cannotWrite();
}

OutputFile::~OutputFile() {
  if (file_) ::unlink(aside_.c_str());
}

void OutputFile::write(const void* bytes, size_t count) {
  if (count > 0 && std::fwrite(bytes, 1, count, file_.get()) != count) cannotWrite();
  bytes_ += count;
}

void OutputFile::sync() {
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) cannotWrite();
}

void OutputFile::finish() {
  sync();
  if (std::rename(aside_.c_str(), name_.c_str()) != 0) cannotWrite();
  file_.reset();
}

void OutputFile::cannotWrite() const {
  throw Failure(Exit::kCannotWrite,
                fmt::format("cannot write {}: {}", name_, std::strerror(errno)));
}

}  // namespace weft::train
