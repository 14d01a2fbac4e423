// SPDX-License-Identifier: Apache-2.0
#include "transports/mapping.h"

#include <sys/mman.h>

#include <cerrno>

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

}  // namespace weft::transport
