// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <memory>

namespace weft::transport {

// Owned pages. They are not inherited by fork (MADV_DONTFORK): a child could only do harm with them
// (its stores would look like its parent's), and it would keep them alive, and in local windows
// every store of the parent would first copy the page. So the destructor does nothing in a child.
class Mapping {
 public:
  // A null base with errno set when mmap or madvise fails. fd < 0: private anonymous memory. Pages
  // come when they are touched: most ranks touch little of a window of megabytes.
  Mapping(std::size_t bytes, int fd);
  // Takes over what is mapped already; null or MAP_FAILED is nothing.
  Mapping(void* at, std::size_t bytes);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* base() const { return base_; }
  // False in a child of the process that made it.
  bool present() const { return base_ != nullptr && owner_ == ::getpid(); }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  pid_t owner_ = 0;
};

// The address, which keeps the pages mapped.
std::shared_ptr<std::byte> pagesOf(std::shared_ptr<Mapping> mapping);

// Pages that this memory gets from now on come from that NUMA node while it has some, whoever touches
// them first; a hint, which containers may refuse. Nothing for a negative node.
void preferNode(std::byte* base, std::size_t bytes, int node);
// ... from wherever whoever touches them first runs.
void preferAnyNode(std::byte* base, std::size_t bytes);

// How many of these bytes, from a page's beginning on, have memory.
std::size_t residentBytes(const std::byte* base, std::size_t bytes);

}  // namespace weft::transport
