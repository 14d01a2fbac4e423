// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/durable_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "base/invalid.h"
#include "base/mark.h"
#include "base/text.h"

namespace weft::checkpoint {
namespace {

constexpr std::size_t kPiece = 1 << 20;  // hashed and written at once, while it is in cache
constexpr std::uint64_t kFlush = 16 << 20;

std::string_view advice(int error) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return "; fix: make room on that disk, or raise its quota or the limit (ulimit -f)";
  if (error == EACCES || error == EPERM || error == EROFS) return "; fix: give write permission";
  if (error == ENOENT) return "; fix: name a folder that all ranks see under the same path";
  return "";
}

}  // namespace

Status systemError(std::string_view call, const std::string& path, int error) {
  return Status::error(Code::SystemError, call, " '", path, "': ", std::strerror(error),
                       advice(error));
}

int diskTimeoutMs(int timeoutMs, std::uint64_t bytes) {
  constexpr std::uint64_t kBytesAMs = 10'000, kMost = std::numeric_limits<int>::max();
  return static_cast<int>(
      std::min(static_cast<std::uint64_t>(timeoutMs) + bytes / kBytesAMs, kMost));
}

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

void Sha256::add(const void* data, std::size_t bytes) {
  EVP_DigestUpdate(context_.get(), data, bytes);
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

Status OutputFile::create(const std::string& path, OutputFile* out) {
  OutputFile made;
  made.path_ = path;
  (void)::unlink(path.c_str());  // a link is not followed: what it names is somebody else's
  made.file_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!made.file_) return systemError("cannot create", path);
  *out = std::move(made);
  return {};
}

Status OutputFile::append(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, kPiece);
    hash_.add(from, piece);
    for (std::size_t done = 0; done < piece;) {
      const ssize_t n = ::write(file_.get(), from + done, piece - done);
      if (n < 0 && errno == EINTR && WEFT_MARK("file: write again")) continue;
      if (n <= 0) return systemError("cannot write", path_);
      done += static_cast<std::size_t>(n);
    }
    from += piece;
    bytes -= piece;
    bytes_ += piece;
    if (bytes_ - flushed_ < kFlush) continue;
    // The disk writes what there is while the next is hashed. A hint: finish() makes sure.
    (void)::sync_file_range(file_.get(), static_cast<off64_t>(flushed_),
                            static_cast<off64_t>(bytes_ - flushed_), SYNC_FILE_RANGE_WRITE);
    flushed_ = bytes_;
  }
  return {};
}

Status OutputFile::finish() {
  if (::fsync(file_.get()) != 0) return systemError("cannot sync", path_);
  return file_.close() ? Status() : systemError("cannot close", path_);
}

Status InputFile::open(const std::string& path, InputFile* out) {
  InputFile made;
  made.path_ = path;
  made.file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!made.file_ || ::fstat(made.file_.get(), &info) != 0) return systemError("cannot open", path);
  if (!S_ISREG(info.st_mode)) return invalid("'", path, "' is not a file");
  made.bytes_ = static_cast<std::uint64_t>(info.st_size);
  *out = std::move(made);
  return {};
}

Status InputFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t n = ::pread(file_.get(), at, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR && WEFT_MARK("file: read again")) continue;
    if (n < 0) return systemError("cannot read", path_);
    if (n == 0)
      return Status::error(Code::SystemError, "'", path_, "' ends at byte ", offset,
                           ", earlier than it did");
    at += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return {};
}

Status InputFile::sha256(std::string* hex) const {
  Sha256 hash;
  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes_, kPiece));
  for (std::uint64_t at = 0; at < bytes_; at += kPiece) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, bytes_ - at));
    WEFT_TRY(read(at, piece.data(), n));
    hash.add(piece.data(), n);
  }
  *hex = hash.hex();
  return {};
}

Status readFile(const std::string& path, std::uint64_t limit, std::string* content) {
  InputFile file;
  WEFT_TRY(InputFile::open(path, &file));
  if (file.bytes() > limit) return invalid("'", path, "' is too long: ", file.bytes(), " bytes");
  content->resize(file.bytes());
  return file.read(0, content->data(), content->size());
}

Status writeFile(const std::string& path, std::string_view content) {
  OutputFile file;
  WEFT_TRY(OutputFile::create(path, &file));
  WEFT_TRY(file.append(content.data(), content.size()));
  return file.finish();
}

Status replaceFile(const std::string& path, std::string_view content) {
  const std::string aside = path + ".tmp";
  WEFT_TRY(writeFile(aside, content));
  if (std::rename(aside.c_str(), path.c_str()) != 0) return systemError("cannot replace", path);
  return {};
}

Status makeFolders(const std::string& path) {
  std::string parent = path.starts_with('/') ? "/" : ".";
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string folder = path.substr(0, end);
    const bool made = ::mkdir(folder.c_str(), 0777) == 0;
    if (!made && errno != EEXIST) return systemError("cannot make folder", folder);
    if (made) WEFT_TRY(syncFolder(parent));
    parent = folder;
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return systemError("cannot make folder", path, ENOTDIR);
}

Status syncFolder(const std::string& path) {
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return systemError("cannot open", path);
  // Some file systems cannot sync a folder, and need not.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) return systemError("cannot sync", path);
  return {};
}

}  // namespace weft::checkpoint
