// SPDX-License-Identifier: Apache-2.0
#include "transports/mapping.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace weft::transport {

namespace {

void* map(std::size_t bytes, int fd) {
  const int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, fd, 0);
}

}  // namespace

Mapping::Mapping(std::size_t bytes, int fd) : Mapping(map(bytes, fd), bytes) {}

Mapping::Mapping(void* at, std::size_t bytes) : bytes_(bytes), owner_(::getpid()) {
  if (at == nullptr || at == MAP_FAILED) return;
  if (::madvise(at, bytes, MADV_DONTFORK) != 0) {
    const int error = errno;
    ::munmap(at, bytes);
    errno = error;
    return;
  }
  base_ = static_cast<std::byte*>(at);
}

Mapping::~Mapping() {
  if (present()) ::munmap(base_, bytes_);
}

std::shared_ptr<std::byte> pagesOf(std::shared_ptr<Mapping> mapping) {
  std::byte* const base = mapping->base();
  return {std::move(mapping), base};
}

void preferNode(std::byte* base, std::size_t bytes, int node) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 1024 / kBits> nodes{};  // as many as kernels know
  const auto bit = static_cast<std::size_t>(node);
  if (node < 0 || bit >= nodes.size() * kBits) return;
  nodes[bit / kBits] = 1UL << bit % kBits;
  ::syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, nodes.data(), nodes.size() * kBits + 1, 0);
}

void preferAnyNode(std::byte* base, std::size_t bytes) {
  ::syscall(SYS_mbind, base, bytes, MPOL_DEFAULT, nullptr, 0, 0);
}

std::size_t residentBytes(const std::byte* base, std::size_t bytes) {
  static constexpr std::size_t kPageBytes = 4096, kPages = 1024;  // asked for at once
  std::array<unsigned char, kPages> pages;
  std::size_t resident = 0;
  for (std::size_t at = 0; at < bytes; at += kPages * kPageBytes) {
    const std::size_t length = std::min(bytes - at, kPages * kPageBytes);
    if (::mincore(const_cast<std::byte*>(base) + at, length, pages.data()) != 0) return bytes;
    const auto end = pages.begin() + static_cast<std::ptrdiff_t>((length + 4095) / kPageBytes);
    resident += kPageBytes * static_cast<std::size_t>(std::count_if(
                                 pages.begin(), end, [](unsigned char page) { return page & 1; }));
  }
  return resident;
}

}  // namespace weft::transport
