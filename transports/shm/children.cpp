// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/children.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/no_fork.h"
#include "base/threads.h"

namespace weft::shm {
namespace {

struct Child {
  std::uint64_t number = 0;  // of the fork
  Fd end;                    // of its pipe; none: nobody will hear when it has ended

  bool hasEnded() const {
    pollfd entry{end.get(), POLLIN, 0};
    return end && ::poll(&entry, 1, 0) > 0;
  }
};

struct Known {
  ForkSafeMutex mutex;
  std::vector<Child> children;
  std::uint64_t lost = 0;  // the last fork that could not be noted
};
Known& known() { return processWide<Known>(); }

std::atomic<std::uint64_t> forked{0};
std::atomic<std::uint64_t> newest{0};  // the last fork whose child may live

// From before the fork until after it.
thread_local int readEnd = -1, writeEnd = -1;

}  // namespace

void Children::beforeFork() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  readEnd = ends[0];
  writeEnd = ends[1];
}

void Children::inParent() {
  if (writeEnd >= 0) ::close(writeEnd);
  Fd end(std::exchange(readEnd, -1));
  writeEnd = -1;
  const std::lock_guard lock(known().mutex);
  const std::uint64_t number = forked.fetch_add(1, std::memory_order_acq_rel) + 1;
  const Status noted = withoutExceptions([&] {
    known().children.push_back({number, std::move(end)});
    return Status();
  });
  if (!noted.ok()) known().lost = number;
  newest.store(number, std::memory_order_release);
}

// Its own end stays open until the process ends.
void Children::inChild() {
  if (readEnd >= 0) ::close(readEnd);
  readEnd = writeEnd = -1;
  known().children.clear();
  known().lost = 0;
  newest.store(0, std::memory_order_release);
}

std::uint64_t Children::forks() { return forked.load(std::memory_order_acquire); }

bool Children::live(std::uint64_t since) {
  if (newest.load(std::memory_order_acquire) <= since) return false;
  const std::lock_guard lock(known().mutex);
  std::erase_if(known().children, [](const Child& child) { return child.hasEnded(); });
  std::uint64_t last = known().lost;
  for (const Child& child : known().children) last = std::max(last, child.number);
  newest.store(last, std::memory_order_release);
  return last > since;
}

}  // namespace weft::shm
