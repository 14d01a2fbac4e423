// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "net/socket.h"

namespace weft::net {

// Which of many descriptors have something, without a look at all others: epoll(7). One thread. Each
// has an id, by which it is told, and is removed before it is closed.
class ReadySet {
 public:
  ReadySet();
  // SystemError without a descriptor for it: to be asked once.
  Status isOpen() const;

  // For poll(2): readable while one of them is ready.
  int fd() const { return epoll_.fd(); }
  // Until then it is ready once something can be read; with `writes`, also once something can be
  // written. Again: what it is to be told for has changed.
  // False: the system has no room for it.
  bool watch(int fd, std::uint64_t id, bool writes = false);
  void remove(int fd);
  // Those that are ready now.
  std::vector<std::uint64_t> take();

 private:
  Socket epoll_;  // gone in a forked child, as what is in it
  int error_ = 0;
  std::unordered_map<int, std::uint32_t> events_;
};

}  // namespace weft::net
