// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/limits.h"

#include <dirent.h>
#include <sys/resource.h>

#include <cerrno>
#include <mutex>

#include "base/text.h"

namespace weft {
namespace {

// `limit` if even the count needs one too many; 0 where /proc is not mounted.
std::size_t openDescriptors(std::size_t limit) {
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return errno == EMFILE ? limit : 0;
  std::size_t entries = 0;
  while (::readdir(directory) != nullptr) ++entries;
  ::closedir(directory);
  return entries - 3;  // ".", ".." and the directory itself
}

}  // namespace

Status reserveDescriptors(std::size_t more) {
  static std::mutex mutex;  // several ranks may be threads of this process
  const std::lock_guard lock(mutex);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::size_t open = openDescriptors(limit.rlim_cur);
  const std::size_t need = open + more;
  if (limit.rlim_cur >= need) return {};
  if (limit.rlim_max >= need) {
    limit.rlim_cur = need;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  }
  return Status::error(Code::SystemError,
                       text("shm transport: need ", need, " open files (", open, " open, ", more,
                            " for the peers), hard limit ", limit.rlim_max, "; fix: ulimit -Hn ",
                            need, " (LimitNOFILE=, docker --ulimit nofile=)"));
}

}  // namespace weft
