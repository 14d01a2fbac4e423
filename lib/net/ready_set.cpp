// SPDX-License-Identifier: Apache-2.0
#include "net/ready_set.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "net/fd_limit.h"

namespace weft::net {

ReadySet::ReadySet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), error_(epoll_ ? 0 : errno) {}

Status ReadySet::isOpen() const {
  if (epoll_) return {};
  return Status::error(Code::SystemError, "no epoll(7): ", std::strerror(error_), fixFor(error_));
}

bool ReadySet::watch(int fd, std::uint64_t id, bool writes) {
  const std::uint32_t wanted = writes ? EPOLLIN | EPOLLOUT : EPOLLIN;
  const auto [at, isNew] = events_.try_emplace(fd, 0u);
  if (at->second == wanted) return true;
  at->second = wanted;
  epoll_event event{.events = wanted, .data = {.u64 = id}};
  return ::epoll_ctl(epoll_.fd(), isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0;
}

void ReadySet::remove(int fd) {
  if (events_.erase(fd) != 0) (void)::epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
}

// The rest is told by the next call.
std::vector<std::uint64_t> ReadySet::take() {
  std::array<epoll_event, 128> events;
  const int ready = ::epoll_wait(epoll_.fd(), events.data(), static_cast<int>(events.size()), 0);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < ready; ++i) ids.push_back(events[static_cast<std::size_t>(i)].data.u64);
  return ids;
}

}  // namespace weft::net
