// SPDX-License-Identifier: Apache-2.0
#include "base/open_files.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <vector>

#include "base/folder.h"
#include "base/no_fork.h"
#include "base/text.h"

namespace weft::inline base {
namespace {

constexpr const char* kOpenFiles = "/proc/self/fd";

// Linux says since 6.2 how many there are; before, only which, and to list them takes one too: if
// there is none left, all `limit` of them are open. 0 where /proc is not mounted.
std::size_t openFiles(std::size_t limit) {
  struct stat folder {};
  if (::stat(kOpenFiles, &folder) == 0 && folder.st_size > 0)
    return static_cast<std::size_t>(folder.st_size);
  std::vector<std::string> all;
  const int failed = listFolder(kOpenFiles, &all);
  if (failed != 0) return failed == EMFILE ? limit : 0;
  return all.size() - 1;  // that of the folder
}

}  // namespace

Status reserveOpenFiles(std::size_t more, std::size_t spare, std::string_view what) {
  static ForkSafeMutex mutex;  // or one thread would undo what another has raised meanwhile
  const std::lock_guard lock(mutex);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::size_t open = openFiles(limit.rlim_cur);
  const std::size_t need = open + more;
  if (need + spare <= limit.rlim_cur) return {};
  if (need > limit.rlim_max)
    return Status::error(Code::SystemError, "need ", need, " open files (", open, " open, ", more,
                         " for ", what, "), hard limit ", limit.rlim_max, "; fix: ulimit -Hn ",
                         need, " or more (LimitNOFILE=, docker --ulimit nofile=)");
  limit.rlim_cur = std::min<rlim_t>(need + spare, limit.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // allowed up to the hard limit
  return {};
}

}  // namespace weft::inline base
