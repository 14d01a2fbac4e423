// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/fd_limit.h"

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

// Counting takes a descriptor too: if there is none left, all `limit` of them are open.
std::uint64_t openFds(std::uint64_t limit) {
  const std::unique_ptr<DIR, CloseDir> dir(opendir("/proc/self/fd"));
  if (!dir) return limit;
  std::uint64_t count = 0;
  while (const dirent* entry = readdir(dir.get())) count += entry->d_name[0] != '.';
  return count - 1;  // the one that counted
}

}  // namespace

Status reserveFds(std::uint64_t more) {
  static std::mutex mutex;  // or a joiner would undo what the root has raised meanwhile
  const std::lock_guard lock(mutex);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::uint64_t open = openFds(limit.rlim_cur);
  const std::uint64_t need = open + more;
  if (need + more <= limit.rlim_cur) return {};
  if (need > limit.rlim_max) {
    return Status::error(
        Code::SystemError,
        text("need ", need, " open files (", open, " open, ", more,
             " for the bootstrap), hard limit ", limit.rlim_max, ". fix: ulimit -Hn ", need,
             " or more (LimitNOFILE=, docker --ulimit nofile=)"));
  }
  limit.rlim_cur = std::min<rlim_t>(need + more, limit.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // allowed up to the hard limit
  return {};
}

bool outOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

std::string fixFor(int error) {
  if (error == ENFILE) return ". fix: raise the system's limit of open files (sysctl fs.file-max)";
  if (error == ENOMEM || error == ENOBUFS) return ". fix: free memory on this host";
  rlimit limit{};
  if (error != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return "";
  return text(". fix: raise the limit of open files, which is ", limit.rlim_cur, " (ulimit -n ",
              std::max<rlim_t>(64, 2 * limit.rlim_cur), ')');
}

}  // namespace weft
