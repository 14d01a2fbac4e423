// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/descriptors.h"

#include <utility>

namespace weft::simulation {

Descriptors& descriptors() {
  static Descriptors all;
  return all;
}

int Descriptors::add(std::shared_ptr<Descriptor> descriptor) {
  open_.push_back(std::move(descriptor));
  return kFirst + static_cast<int>(open_.size()) - 1;
}

Descriptor* Descriptors::find(int fd) const {
  const auto index = static_cast<std::size_t>(fd - kFirst);
  return fd >= kFirst && index < open_.size() ? open_[index].get() : nullptr;
}

int Descriptors::poll(Scheduler& scheduler, std::span<pollfd> entries, int timeoutMs) const {
  const Time until = timeoutMs < 0 ? kNever / 2 : scheduler.now() + Time{timeoutMs} * kMillisecond;
  for (;;) {
    int ready = 0;
    for (pollfd& entry : entries) {
      const Descriptor* const descriptor = find(entry.fd);
      entry.revents = descriptor ? static_cast<short>(descriptor->events() & entry.events) : 0;
      ready += entry.revents != 0;
    }
    if (ready != 0 || timeoutMs == 0 || scheduler.now() >= until) return ready;
    scheduler.waitFor(this, until);
  }
}

}  // namespace weft::simulation
