// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

struct evp_md_ctx_st;  // libcrypto's

namespace weft::checkpoint {

// Files that are on disk once a call has said so, and their SHA-256. Errors of the system are
// SystemError and name the file.

// A SHA-256 of pieces.
class Sha256 {
 public:
  Sha256();
  void add(const void* data, std::size_t bytes);
  std::string hex();  // ends it

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

// A new file in place of whatever has its name, written from its beginning and hashed on the way.
class OutputFile {
 public:
  static Status create(const std::string& path, OutputFile* out);
  Status append(const void* data, std::size_t bytes);
  // Returns when it is on disk.
  Status finish();

  std::uint64_t bytes() const { return bytes_; }
  std::string sha256() { return hash_.hex(); }  // after finish()

 private:
  std::string path_;
  Fd file_;
  Sha256 hash_;
  std::uint64_t bytes_ = 0, flushed_ = 0;
};

class InputFile {
 public:
  static Status open(const std::string& path, InputFile* out);
  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }
  // Exactly so many bytes, all inside the file. Any thread.
  Status read(std::uint64_t offset, void* to, std::size_t bytes) const;
  Status sha256(std::string* hex) const;

 private:
  std::string path_;
  Fd file_;
  std::uint64_t bytes_ = 0;
};

// How long to wait for ranks that write or read so many bytes, beyond the time limit of a call. A
// disk of less than 10 MB/s counts as one that hangs.
int diskTimeoutMs(int timeoutMs, std::uint64_t bytes);

// The error of a system call, by default the one that has just failed.
Status systemError(std::string_view call, const std::string& path, int error = errno);

// Small files. A longer one than `limit` is InvalidArgument.
Status readFile(const std::string& path, std::uint64_t limit, std::string* content);
Status writeFile(const std::string& path, std::string_view content);
// In place of what may be there, so that a reader finds the one or the other.
Status replaceFile(const std::string& path, std::string_view content);
// The folder and all above it that are not there yet, whose names are on disk then.
Status makeFolders(const std::string& path);
// The names in a folder, not the files.
Status syncFolder(const std::string& path);

}  // namespace weft::checkpoint
