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

std::uint64_t openFds() {
  const std::unique_ptr<DIR, CloseDir> dir(opendir("/proc/self/fd"));
  std::uint64_t count = 0;
  while (dir && readdir(dir.get())) ++count;
  return count;
}

}  // namespace

Status reserveFds(std::uint64_t more) {
  rlimit limit{};
  const std::uint64_t need = openFds() + more;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || need + more <= limit.rlim_cur) return {};
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
