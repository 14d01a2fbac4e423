// SPDX-License-Identifier: Apache-2.0
#include "base/open_files.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include "base/text.h"

namespace weft {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

// Counting takes a descriptor too: if there is none left, all `limit` of them are open. 0 where
// /proc is not mounted.
std::size_t openFiles(std::size_t limit) {
  const std::unique_ptr<DIR, CloseDir> dir(opendir("/proc/self/fd"));
  if (!dir) return errno == EMFILE ? limit : 0;
  std::size_t count = 0;
  while (const dirent* entry = readdir(dir.get())) count += entry->d_name[0] != '.';
  return count - 1;  // the one that counted
}

}  // namespace

Status reserveOpenFiles(std::size_t more, std::size_t spare, std::string_view what) {
  static std::mutex mutex;  // or one thread would undo what another has raised meanwhile
  const std::lock_guard lock(mutex);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::size_t open = openFiles(limit.rlim_cur);
  const std::size_t need = open + more;
  if (need + spare <= limit.rlim_cur) return {};
  if (need > limit.rlim_max)
    return Status::error(Code::SystemError,
                         text("need ", need, " open files (", open, " open, ", more, " for ", what,
                              "), hard limit ", limit.rlim_max, "; fix: ulimit -Hn ", need,
                              " or more (LimitNOFILE=, docker --ulimit nofile=)"));
  limit.rlim_cur = std::min<rlim_t>(need + spare, limit.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // allowed up to the hard limit
  return {};
}

}  // namespace weft
