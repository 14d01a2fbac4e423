// SPDX-License-Identifier: Apache-2.0
#include "transports/mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace weft::transport {

namespace {

void* mapNow(std::size_t bytes, int fd, std::size_t atOnce) {
  const int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, fd, 0);
  if (at == MAP_FAILED || atOnce == 0) return at;
  const int again = kind | MAP_FIXED | MAP_POPULATE;
  if (::mmap(at, std::min(atOnce, bytes), PROT_READ | PROT_WRITE, again, fd, 0) == at) return at;
  const int error = errno;
  ::munmap(at, bytes);
  errno = error;
  return nullptr;
}

}  // namespace

Mapping::Mapping(std::size_t bytes, int fd, std::size_t atOnce)
    : Mapping(mapNow(bytes, fd, atOnce), bytes) {}

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

}  // namespace weft::transport
