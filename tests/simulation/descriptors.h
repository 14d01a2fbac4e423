// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <memory>
#include <span>
#include <vector>

#include "tests/simulation/scheduler.h"

namespace weft::simulation {

// What a simulated file descriptor stands for.
class Descriptor {
 public:
  virtual ~Descriptor() = default;
  // POLLIN, POLLOUT: what would not block now.
  virtual short events() const = 0;
};

// The simulated file descriptors; their numbers are larger than any of the system's.
class Descriptors {
 public:
  static constexpr int kFirst = 1 << 20;

  int add(std::shared_ptr<Descriptor> descriptor);
  // Null if it is closed, or the system's.
  Descriptor* find(int fd) const;
  void close(int fd) { open_[static_cast<std::size_t>(fd - kFirst)].reset(); }
  void clear() { open_.clear(); }
  // poll(2). Whoever makes a descriptor ready wakes those that wait for this object.
  int poll(Scheduler& scheduler, std::span<pollfd> entries, int timeoutMs) const;

 private:
  std::vector<std::shared_ptr<Descriptor>> open_;
};
Descriptors& descriptors();

}  // namespace weft::simulation
