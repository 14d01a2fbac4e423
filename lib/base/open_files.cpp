// SPDX-License-Identifier: Apache-2.0
#include "base/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <mutex>

#include "base/no_fork.h"
#include "base/text.h"

namespace weft::inline base {
namespace {

// Counting takes a descriptor too: if there is none left, all `limit` of them are open. 0 where
// /proc is not mounted.
std::size_t openFiles(std::size_t limit) {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  if (error) return error.value() == EMFILE ? limit : 0;
  return static_cast<std::size_t>(std::distance(begin(all), end(all))) - 1;  // that of `all`
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
    return Status::error(Code::SystemError,
                         text("need ", need, " open files (", open, " open, ", more, " for ", what,
                              "), hard limit ", limit.rlim_max, "; fix: ulimit -Hn ", need,
                              " or more (LimitNOFILE=, docker --ulimit nofile=)"));
  limit.rlim_cur = std::min<rlim_t>(need + spare, limit.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // allowed up to the hard limit
  return {};
}

}  // namespace weft::inline base
