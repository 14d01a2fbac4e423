// SPDX-License-Identifier: Apache-2.0
#include "tune/machine_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/environment.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "tune/processor.h"
#include "weft/weft.h"

namespace weft::tune {
namespace {

constexpr std::size_t kMostFileBytes = 16384;  // a file has up to four rounds of less than 2,000

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

// "" if it is not a small regular file of this user's.
std::string contentOf(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || !isMine(info) ||
      info.st_size > static_cast<off_t>(kMostFileBytes))
    return "";
  std::string content(kMostFileBytes, '\0');
  const ssize_t bytes = read(file.get(), content.data(), content.size());
  content.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return content;
}

constexpr const char* kRecorded = "weft recorded machine 2";
constexpr const char* kCalibrated = "weft machine ";  // and a version

std::string headOf(std::string_view key) { return text(kCalibrated, "6\n", key, "\n"); }

// Nothing yet, or what an earlier calibration left: never a device, a link, a folder or a file of
// another kind, nor one that cannot be read.
bool mayReplace(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT;
  const bool isEmpty = S_ISREG(info.st_mode) && isMine(info) && info.st_size == 0;
  return isEmpty || contentOf(path).starts_with(kCalibrated);
}

// How the figures came about, in one line before them.
std::string historyLine(const Calibration& c) {
  return text(c.when, " ", c.rounds, " ", c.doubts, " ", c.complete ? 1 : 0, " ", c.settled ? 1 : 0,
              "\n");
}

bool parseHistory(const std::string& line, Calibration* c) {
  std::istringstream words(line);
  return static_cast<bool>(words >> c->when >> c->rounds >> c->doubts >> c->complete >>
                           c->settled) &&
         historyLine(*c) == line;
}

// The rounds that are kept, an empty line after each.
std::string roundLines(const Calibration& c) {
  std::string lines;
  for (const Machine& machine : c.measured()) lines += toText(machine) + '\n';
  return lines;
}

bool parseRounds(std::string_view lines, Calibration* c) {
  for (std::size_t i = 0; i < c->measured().size(); ++i) {
    const std::size_t end = lines.find("\n\n");
    if (end == std::string_view::npos || !parse(lines.substr(0, end + 1), &c->kept[i]))
      return false;
    lines.remove_prefix(end + 2);
  }
  return lines.empty();
}

// Without comments, blanks at the ends of lines and empty lines.
std::string withoutComments(std::istream& file) {
  std::string lines;
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    line.resize(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) lines += line + '\n';
  }
  return lines;
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

bool loadCalibration(const std::string& path, std::string_view key, Calibration* calibration) {
  const std::string content = contentOf(path), head = headOf(key);
  const std::size_t end = content.rfind("sum ");
  if (!content.starts_with(head) || end == std::string::npos || end < head.size()) return false;
  if (sealed(content.substr(0, end)) != content) return false;
  const std::string body = content.substr(head.size(), end - head.size());
  const std::size_t figures = body.find('\n') + 1;
  Calibration read;
  if (!parseHistory(body.substr(0, figures), &read) ||
      !parseRounds(std::string_view(body).substr(figures), &read))
    return false;
  *calibration = read;
  return true;
}

bool saveCalibration(const std::string& path, std::string_view key,
                     const Calibration& calibration) {
  const std::string folder = folderOf(path);
  mkdir(folder.c_str(), 0700);
  if (!isSafeFolder(folder) || !mayReplace(path)) return false;
  std::string draft = text(path, ".XXXXXX");
  const Fd file(mkostemp(draft.data(), O_CLOEXEC));
  if (file.get() < 0) return false;
  const std::string content =
      sealed(text(headOf(key), historyLine(calibration), roundLines(calibration)));
  const bool written =
      write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (written && rename(draft.c_str(), path.c_str()) == 0) return true;
  unlink(draft.c_str());
  return false;
}

bool isRecorded(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  std::ifstream file(path);
  std::string first;
  return std::getline(file, first) && first == kRecorded;
}

Status loadRecorded(const std::string& path, Machine* machine) {
  std::ifstream file(path);
  std::string first;
  std::getline(file, first);
  if (parse(withoutComments(file), machine)) return {};
  return Status::error(
      Code::InvalidArgument, "WEFT_TUNE_FILE: ", path,
      " is a recorded machine whose lines after the first are not one \"name value\" for each "
      "figure, or \"name\" and a value for each footprint, within its limits; fix: write all of: ",
      figureNames());
}

}  // namespace weft::tune
