// SPDX-License-Identifier: Apache-2.0
#include "tune/machine_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/environment.h"
#include "base/hash.h"
#include "base/text.h"
#include "tune/processor.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr std::size_t kMostBytes = 4096;  // a file is about 400

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kBuild = "sanitized";
#elif defined(__OPTIMIZE__)
constexpr const char* kBuild = "optimized";
#else
constexpr const char* kBuild = "plain";
#endif

std::string hexOf(std::uint64_t value) {
  std::array<char, 17> digits;
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value));
  return digits.data();
}

std::string folderOf(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool isMine(const struct stat& info) {
  return info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// A folder in which nobody else can put files of their own.
bool isSafeFolder(const std::string& folder) {
  struct stat info {};
  return stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && isMine(info);
}

// Nothing yet, or what an earlier calibration left: never a device, a link or a folder.
bool mayReplace(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT;
  return S_ISREG(info.st_mode) && isMine(info);
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// "" if it is not a small regular file of this user's.
std::string contentOf(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || !isMine(info) ||
      info.st_size > static_cast<off_t>(kMostBytes))
    return "";
  std::string content(kMostBytes, '\0');
  const ssize_t bytes = read(file.get(), content.data(), content.size());
  content.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return content;
}

// Everything but the check sum, which stands last.
std::string bodyOf(std::string_view key, const Machine& machine) {
  return text("weft machine 1\n", key, "\n", toText(machine));
}

std::string sealed(const std::string& body) {
  return text(body, "sum ", hexOf(Hash().add(body).value()), "\n");
}

}  // namespace

std::string machineKey() {
  return text(processorName(), ", weft ", WEFT_MAJOR, ".", WEFT_MINOR, ".", WEFT_PATCH, " ",
              kBuild);
}

std::string machineFilePath() {
  std::string folder = environment("XDG_CACHE_HOME");
  if (!folder.starts_with('/')) folder = text(environment("HOME"), "/.cache");
  if (!folder.starts_with('/') || folder == "/.cache") return "";
  return text(folder, "/weft/machine-", hexOf(Hash().add(machineKey()).value()));
}

bool loadMachine(const std::string& path, std::string_view key, Machine* machine) {
  const std::string content = contentOf(path);
  const std::string head = text("weft machine 1\n", key, "\n");
  const std::size_t end = content.rfind("sum ");
  if (!content.starts_with(head) || end == std::string::npos || end < head.size()) return false;
  if (sealed(content.substr(0, end)) != content) return false;
  return parse(std::string_view(content).substr(head.size(), end - head.size()), machine);
}

bool saveMachine(const std::string& path, std::string_view key, const Machine& machine) {
  const std::string folder = folderOf(path);
  mkdir(folder.c_str(), 0700);
  if (!isSafeFolder(folder) || !mayReplace(path)) return false;
  std::string draft = text(path, ".XXXXXX");
  const File file(mkostemp(draft.data(), O_CLOEXEC));
  if (file.get() < 0) return false;
  const std::string content = sealed(bodyOf(key, machine));
  const bool written =
      write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (written && rename(draft.c_str(), path.c_str()) == 0) return true;
  unlink(draft.c_str());
  return false;
}

}  // namespace weft
