// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/limits.h"

#include <dirent.h>
#include <sys/resource.h>

#include <mutex>

#include "base/text.h"

namespace weft {
namespace {

// 0 where /proc is not mounted.
std::size_t openDescriptors() {
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  std::size_t entries = 0;
  while (::readdir(directory) != nullptr) ++entries;
  ::closedir(directory);
  return entries - 3;  // ".", ".." and the directory itself
}

}  // namespace

Status reserveDescriptors(std::size_t more) {
  static std::mutex mutex;  // several ranks may be threads of this process
  const std::lock_guard lock(mutex);
  const std::size_t open = openDescriptors();
  const std::size_t need = open + more;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need) return {};
  if (limit.rlim_max >= need) {
    limit.rlim_cur = need;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  }
  return Status::error(Code::SystemError,
                       text("shm transport: need ", need, " open files (", open, " open, ", more,
                            " for the peers), hard limit ", limit.rlim_max,
                            "; fix: ulimit -Hn ", need, " (LimitNOFILE=, docker --ulimit nofile=)"));
}

}  // namespace weft
