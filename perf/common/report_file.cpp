// SPDX-License-Identifier: Apache-2.0
#include "perf/common/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

namespace weft::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;      // the kernel's limit
constexpr off_t kLeastRoom = 4096;  // bytes that a disk must have before the work
constexpr std::chrono::seconds kReaderPatience{10};

[[noreturn]] void fail(const std::string& path, const char* why) {
  throw CannotWrite("cannot write '" + path + "': " + why +
                    "; name a file in a folder that exists and that you may write to");
}

[[noreturn]] void failErrno(const std::string& path) {
  if (errno == ENOSPC || errno == EDQUOT)
    throw CannotWrite("cannot write '" + path + "': " + std::strerror(errno) + "; make room there");
  if (errno == ENXIO)
    throw CannotWrite("cannot write '" + path + "': nobody reads it; start its reader first");
  fail(path, std::strerror(errno));
}

bool isSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// "-", or another name of the regular file that standard output is.
bool isStandardOutput(const std::string& path) {
  struct stat named {
  }, output{};
  return path == "-" || (::stat(path.c_str(), &named) == 0 && S_ISREG(named.st_mode) &&
                         ::fstat(STDOUT_FILENO, &output) == 0 && isSame(named, output));
}

// Where links lead, also to what is not there yet.
std::string followed(std::string path) {
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code isNone;
    const fs::path link = fs::read_symlink(path, isNone);
    if (isNone) break;
    path = fs::path(path).parent_path() / link;
  }
  return path;
}

// Whether another file can take this one's place. Links of /proc lead to files that no path names.
bool isReplaceable(const std::string& target, const struct stat& there) {
  struct stat named {};
  const fs::path folder = fs::path(target).parent_path();
  return S_ISREG(there.st_mode) && ::stat(target.c_str(), &named) == 0 && isSame(named, there) &&
         ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0;
}

void writeAll(int descriptor, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno != EINTR) failErrno(path);
    content.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

class Descriptor {
 public:
  Descriptor(int number, const std::string& path) : number_(number), path_(path) {
    if (number < 0) failErrno(path);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  operator int() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void close() {  // some file systems tell only here that there was no room
    if (::close(release()) != 0) failErrno(path_);
  }

 private:
  int number_;
  const std::string& path_;
};

// Opens what is there without replacing it. Nobody can write to a fifo that has no reader; the
// reader may still be starting.
int openInPlace(const std::string& path, int flags) {
  const auto deadline = std::chrono::steady_clock::now() + kReaderPatience;
  int number = -1;
  for (;;) {
    number = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, 0666);
    if (number >= 0 || errno != ENXIO || std::chrono::steady_clock::now() > deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (number >= 0) ::fcntl(number, F_SETFL, ::fcntl(number, F_GETFL) & ~O_NONBLOCK);
  return number;
}

// A file beside the target that becomes it, or is gone.
class Draft {
 public:
  Draft(const std::string& target, const std::string& path)
      : path_(path),
        name_(target + '.' + std::to_string(std::random_device()()) + ".partial"),
        file_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), path) {
    struct stat old {};
    if (::stat(target.c_str(), &old) != 0) return;
    const bool isOurs = ::fchown(file_, old.st_uid, old.st_gid) == 0;
    if (isOurs) ::fchmod(file_, old.st_mode & 07777);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() { ::unlink(name_.c_str()); }

  void reserve() {
    errno = ::posix_fallocate(file_, 0, kLeastRoom);
    if (errno == ENOSPC || errno == EDQUOT) failErrno(path_);  // some disks cannot tell
  }
  // 0: the target is this content now. Else why not, as errno, and it is as it was.
  int become(const std::string& target, const std::string& content) {
    writeAll(file_, content, path_);
    if (::fsync(file_) != 0 && errno != EINVAL) failErrno(path_);
    file_.close();
    return ::rename(name_.c_str(), target.c_str()) == 0 ? 0 : errno;
  }

 private:
  const std::string& path_;
  const std::string name_;
  Descriptor file_;
};

}  // namespace

ReportFile::ReportFile(std::string path) : path_(std::move(path)) {
  if (isStandardOutput(path_)) return;
  struct stat there {};
  const bool exists = ::stat(path_.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) fail(path_, "it is a folder");
  if (exists && ::access(path_.c_str(), W_OK) != 0) failErrno(path_);
  const std::string target = followed(path_);
  if (exists && !isReplaceable(target, there)) return;
  Draft(target, path_).reserve();
  target_ = target;
}

void ReportFile::write(const std::string& content) const {
  if (isReplaced())
    replace(content);
  else
    append(content);
}

void ReportFile::replace(const std::string& content) const {
  const int error = Draft(target_, path_).become(target_, content);
  if (error == EBUSY) return append(content);  // what a container mounts cannot be another file
  errno = error;
  if (error != 0) failErrno(path_);
}

void ReportFile::append(const std::string& content) const {
  if (isStandardOutput(path_)) {
    if (std::fputs(content.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      throw CannotWrite(std::string("cannot write standard output: ") + std::strerror(errno));
    return;
  }
  Descriptor file(openInPlace(path_, O_TRUNC), path_);
  writeAll(file, content, path_);
  file.close();
}

void ReportStream::Close::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

ReportStream::ReportStream(std::string path, Start start) : path_(std::move(path)) {
  if (isStandardOutput(path_)) {
    file_.reset(stdout);
    return;
  }
  Descriptor file(openInPlace(path_, O_CREAT | (start == Start::kEmpty ? O_TRUNC : O_APPEND)),
                  path_);
  file_.reset(::fdopen(file, "w"));
  if (file_ == nullptr) failErrno(path_);
  file.release();
}

void ReportStream::write(const std::string& part) const {
  const bool isTaken = std::fwrite(part.data(), 1, part.size(), file_.get()) == part.size();
  if (!isTaken || std::fflush(file_.get()) != 0) failErrno(path_);
}

std::FILE* besides(std::initializer_list<std::string> reports) {
  const bool isTaken = std::any_of(reports.begin(), reports.end(), isStandardOutput);
  return isTaken ? stderr : stdout;
}

}  // namespace weft::tools
