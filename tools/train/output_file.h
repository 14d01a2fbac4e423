// SPDX-License-Identifier: Apache-2.0
// A file that has its name when it is whole and on disk; what was there before has it until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace weft::train {

class OutputFile {
 public:
  // Throws Failure if it cannot be written, as the calls do.
  explicit OutputFile(const std::string& name);
  // What is not finished is removed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  // All that was written is on disk, under another name yet.
  void sync();
  // So it is, and has its name.
  void finish();

  uint64_t bytes() const { return bytes_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void cannotWrite() const;

  std::string name_, aside_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t bytes_ = 0;
};

}  // namespace weft::train
