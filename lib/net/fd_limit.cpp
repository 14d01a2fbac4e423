// SPDX-License-Identifier: Apache-2.0
#include "net/fd_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/open_files.h"
#include "base/text.h"

namespace weft::net {

Status reserveFds(std::uint64_t more) { return reserveOpenFiles(more, more, "the bootstrap"); }

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

}  // namespace weft::net
