// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/children.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "base/fd.h"
#include "base/no_fork.h"
#include "base/threads.h"

namespace weft::shm {
namespace {

struct Known {
  ForkSafeMutex mutex;
  std::vector<Fd> ends;  // of pipes, one a child
  bool lost = false;     // a child whose end nobody will hear of
};
Known& known() { return processWide<Known>(); }

// From before the fork until after it.
thread_local int readEnd = -1, writeEnd = -1;

bool hasEnded(const Fd& end) {
  pollfd entry{end.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

void Children::beforeFork() {
  int ends[2] = {-1, -1};
  (void)::pipe2(ends, O_CLOEXEC);
  readEnd = ends[0];
  writeEnd = ends[1];
}

void Children::inParent() {
  if (writeEnd >= 0) ::close(writeEnd);
  const std::lock_guard lock(known().mutex);
  const bool kept = readEnd >= 0 && withoutExceptions([] {
                                      known().ends.emplace_back(readEnd);
                                      return Status();
                                    }).ok();
  known().lost = known().lost || !kept;
  readEnd = writeEnd = -1;
}

// Its own end stays open until the process ends.
void Children::inChild() {
  if (readEnd >= 0) ::close(readEnd);
  readEnd = writeEnd = -1;
  known().ends.clear();
  known().lost = false;
}

bool Children::live() {
  const std::lock_guard lock(known().mutex);
  std::erase_if(known().ends, hasEnded);
  return known().lost || !known().ends.empty();
}

}  // namespace weft::shm
