// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/setup.h"
#include "transports/window.h"

namespace weft::shm {

using namespace transport;

// A rank's window in this process's heap. Peers reach it through their views of the heap, which they
// keep, so that its place must not be used for anything else while one of them may still touch it.
// So each rank raises a flag in every window as the last thing it does there, and what has been left
// by its owner waits until the flags of all are raised, or their processes have ended.
class HeapWindow {
 public:
  using Process = std::shared_ptr<const mapped::PeerProcess>;  // null: this one

  // None, without an error, where the heap has no room.
  static Status make(const TransportSetup& setup, std::shared_ptr<HeapWindow>* out);
  // With the flags.
  static std::size_t sizeOf(const WindowLayout& layout);

  // Who may touch it from now on, by rank; nobody, if that is empty. Before it is said anybody may,
  // for ever: of an exchange that fails here others may have heard the place.
  void usedBy(std::vector<Process> members);
  std::byte* base() const { return base_; }

  HeapWindow(std::byte* base, const TransportSetup& setup);
  ~HeapWindow();
  HeapWindow(const HeapWindow&) = delete;
  HeapWindow& operator=(const HeapWindow&) = delete;

 private:
  std::byte* const base_;
  const WindowLayout layout_;
  const std::uint32_t rank_;
  const int node_;
  const pid_t owner_;
  bool known_ = false;
  std::vector<Process> members_;
};

// Another rank's window, which `rank` lets go of when this pointer and its copies are gone.
std::shared_ptr<std::byte> joinHeapWindow(std::byte* base, const WindowLayout& layout,
                                          std::uint32_t rank,
                                          std::shared_ptr<mapped::PeerHeap> heap);

}  // namespace weft::shm
