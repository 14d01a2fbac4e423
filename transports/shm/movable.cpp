// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/movable.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/text.h"

namespace weft::shm {
namespace {

// A line of /proc/self/maps.
struct Area {
  std::uintptr_t from = 0, to = 0;
  std::string permissions;
  std::uint64_t offset = 0, inode = 0;
  std::string name;

  bool covers(std::uintptr_t at) const { return from <= at && at < to; }
};

// Leaves `area` alone if it is another line.
bool parse(const std::string& line, Area* area) {
  Area read;
  std::array<char, 5> permissions{};
  int name = 0;
  const int fields =
      std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*x:%*x %" SCNu64 " %n",
                  &read.from, &read.to, permissions.data(), &read.offset, &read.inode, &name);
  if (fields != 5) return false;
  read.permissions = permissions.data();
  read.name = line.substr(std::min(static_cast<std::size_t>(name), line.size()));
  *area = read;
  return true;
}

struct Reason {
  std::string_view flag;  // of VmFlags in /proc/self/smaps
  const char* why;
};
constexpr Reason kReasons[] = {
    {"sh", "shared with other processes"},
    {"ht", "of huge pages (hugetlbfs)"},
    {"ex", "executable"},
    {"gd", "a stack"},
    {"lo", "locked (mlock)"},
    {"dc", "withheld from children (MADV_DONTFORK), as what devices use is"},
    {"wf", "wiped in children (MADV_WIPEONFORK)"},
    {"um", "watched by userfaultfd"},
    {"uw", "watched by userfaultfd"},
    {"ui", "watched by userfaultfd"},
    {"sl", "sealed (mseal)"},
    {"io", "a device's"},
    {"pf", "a device's"},
    {"mm", "a device's"},
};

Status cannotMove(const Area& area, const std::string& why) {
  return Status::error(Code::InvalidUsage, "the mapping at ", addressText(area.from), " is ", why,
                       "; fix: register what malloc gave, or use weftMemAlloc");
}

Status checkArea(const Area& area, std::uintptr_t stack) {
  if (area.inode != 0) return cannotMove(area, text("of a file, ", area.name));
  if (area.permissions.substr(0, 2) != "rw")
    return cannotMove(area, "not both readable and writable");
  if (area.covers(stack)) return cannotMove(area, "the calling thread's stack");
  return {};
}

Status checkFlags(const Area& area, const std::string& flags, PageAdvice* advice) {
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    const auto* const found = std::ranges::find(kReasons, std::string_view(word), &Reason::flag);
    if (found != std::end(kReasons)) return cannotMove(area, found->why);
    advice->huge = advice->huge || word == "hg";
    advice->small = advice->small || word == "nh";
    advice->dumped = advice->dumped && word != "dd";
  }
  return {};
}

Status notMapped(std::uintptr_t at) {
  return Status::error(Code::InvalidArgument, "no memory is mapped at ", addressText(at),
                       "; fix: register memory that the process has, with its size in bytes");
}

}  // namespace

std::string addressText(std::uintptr_t at) {
  std::array<char, 2 + 2 * sizeof(at) + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "0x%" PRIxPTR, at);
  return digits.data();
}

Status checkMovable(std::istream& smaps, PageRange pages, std::uintptr_t stack,
                    PageAdvice* advice) {
  constexpr std::string_view kFlags = "VmFlags:";
  Area area;
  std::uintptr_t reached = pages.from;  // what lies before is mapped
  for (std::string line; reached < pages.to && std::getline(smaps, line);) {
    if (parse(line, &area)) {
      if (area.to <= reached) continue;
      if (area.from > reached) return notMapped(reached);
      WEFT_TRY(checkArea(area, stack));
    } else if (line.starts_with(kFlags) && area.covers(reached)) {
      WEFT_TRY(checkFlags(area, line.substr(kFlags.size()), advice));
      reached = area.to;
    }
  }
  return reached < pages.to ? notMapped(reached) : Status();
}

Status checkMovable(PageRange pages, PageAdvice* advice) {
  std::ifstream smaps("/proc/self/smaps");
  if (!smaps)
    return Status::error(Code::InvalidUsage,
                         "cannot read /proc/self/smaps, which says what the pages are; fix: mount "
                         "/proc, or use weftMemAlloc");
  return checkMovable(smaps, pages, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)),
                      advice);
}

Status checkUnpinned(std::istream& status) {
  std::uint64_t kib = 0;
  for (std::string line; std::getline(status, line);)
    if (std::sscanf(line.c_str(), "VmPin: %" SCNu64, &kib) == 1 && kib != 0)
      return Status::error(
          Code::InvalidUsage, "devices or io_uring have pinned ", kib,
          " KiB of this process, perhaps these; fix: use weftMemAlloc, or register before them");
  return {};
}

Status checkUnpinned() {
  std::ifstream status("/proc/self/status");
  return checkUnpinned(status);
}

bool showsFile(std::istream& maps, PageRange pages, std::uint64_t inode, std::uint64_t offset) {
  std::uintptr_t reached = pages.from;
  Area area;
  for (std::string line; reached < pages.to && std::getline(maps, line);) {
    if (!parse(line, &area) || area.to <= reached) continue;
    const bool shows = area.from <= reached && area.inode == inode &&
                       area.offset + (reached - area.from) == offset + (reached - pages.from);
    if (!shows) return false;
    reached = area.to;
  }
  return reached >= pages.to;
}

bool showsFile(PageRange pages, std::uint64_t inode, std::uint64_t offset) {
  std::ifstream maps("/proc/self/maps");
  return showsFile(maps, pages, inode, offset);
}

}  // namespace weft::shm
