// SPDX-License-Identifier: Apache-2.0
#include "tools/train/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/train/failure.h"

namespace weft::train {

MappedFile::MappedFile(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat there {};
  void* memory = nullptr;
  bool ok = descriptor >= 0 && ::fstat(descriptor, &there) == 0;
  if (ok && S_ISDIR(there.st_mode)) {
    ok = false;
    errno = EISDIR;  // mmap's own is ENODEV
  }
  if (ok && there.st_size > 0) {
    memory =
        ::mmap(nullptr, static_cast<size_t>(there.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    ok = memory != MAP_FAILED;
  }
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!ok)
    throw Failure(Exit::kData, fmt::format("cannot read {}: {}", file, std::strerror(error)));
  memory_ = std::unique_ptr<const uint8_t, Unmap>(static_cast<const uint8_t*>(memory),
                                                  Unmap{static_cast<size_t>(there.st_size)});
}

void MappedFile::Unmap::operator()(const uint8_t* memory) const {
  ::munmap(const_cast<uint8_t*>(memory), bytes);
}

}  // namespace weft::train
