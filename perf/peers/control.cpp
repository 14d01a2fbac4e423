// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <new>
#include <system_error>
#include <vector>

namespace weft::peers {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void* mapPage(int fd) {
  void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) fail("cannot map the control page");
  return memory;
}

// Cores that this process may use, in order.
std::vector<int> allowedCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) fail("cannot read the allowed cores");
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

Page& openPage(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) fail("cannot open the control page " + path + "; start ranks with weft-peers");
  void* memory = mapPage(fd);
  close(fd);
  return *static_cast<Page*>(memory);
}

bool haveOwnCores(const Page& page) {
  return static_cast<std::size_t>(page.ranks * page.coresPerRank) <= page.coreCount;
}

PageOwner::PageOwner(int ranks, int coresPerRank) : fd_(memfd_create("weft-peers", MFD_CLOEXEC)) {
  if (fd_ < 0) fail("cannot create the control page");
  if (ftruncate(fd_, sizeof(Page)) != 0) fail("cannot size the control page");
  page_ = new (mapPage(fd_)) Page;
  page_->driver = getpid();
  page_->ranks = ranks;
  page_->coresPerRank = coresPerRank;
  const std::vector<int> cores = allowedCores();
  page_->coreCount = std::min(cores.size(), page_->cores.size());
  std::copy_n(cores.begin(), page_->coreCount, page_->cores.begin());
}

PageOwner::~PageOwner() {
  munmap(page_, sizeof(Page));
  close(fd_);
}

std::string PageOwner::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), fd_); }

void sleepWhile(const std::atomic<std::uint32_t>& word, std::uint32_t seen, int ms) {
  const timespec timeout{ms / 1000, (ms % 1000) * 1000000L};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void wakeAll(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::int64_t nowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

}  // namespace weft::peers
