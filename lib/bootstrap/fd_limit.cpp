// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/fd_limit.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>

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
  while (readdir(dir.get())) ++count;
  return count;
}

}  // namespace

Status reserveFds(std::uint64_t more) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::uint64_t need = openFds(limit.rlim_cur) + more;
  if (need + more <= limit.rlim_cur) return {};
  if (need > limit.rlim_max) {
    return Status::error(Code::SystemError,
                         text("need ", need, " file descriptors, hard limit ", limit.rlim_max,
                              ". fix: raise it (ulimit -Hn, LimitNOFILE, docker --ulimit)"));
  }
  limit.rlim_cur = std::min<rlim_t>(need + more, limit.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // allowed up to the hard limit
  return {};
}

}  // namespace weft
