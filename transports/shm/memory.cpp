// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transports/shm/available.h"

namespace weft {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status outOfMemory(std::size_t bytes, const std::string& why) {
  return Status::error(Code::OutOfMemory,
                       text("cannot allocate ", bytes, " bytes of shared memory (memfd): ", why,
                            "; fix: raise the memory limit of this cgroup or container, run fewer"
                            " ranks a host or set a smaller WEFT_SEGMENT_KB"));
}

// Growing a file beyond RLIMIT_FSIZE would not only fail but raise SIGXFSZ.
Status checkFileLimit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return {};
  return Status::error(Code::OutOfMemory, text("cannot allocate ", bytes,
                                               " bytes of shared memory: the file size"
                                               " limit is ",
                                               limit.rlim_cur, " bytes; fix: ulimit -f unlimited"));
}

// The kernel would rather kill a process than refuse pages of a memfd.
Status checkAvailable(std::size_t bytes) {
  const Available available = availableMemory();
  if (bytes <= available.bytes) return {};
  return outOfMemory(bytes, text(available.where, " has ", available.bytes, " bytes left"));
}

Status allocate(int memory, std::size_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(memory, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Status() : outOfMemory(bytes, std::strerror(errno));
}

}  // namespace

Status createMemory(std::size_t bytes, Fd* memory) {
  WEFT_TRY(checkFileLimit(bytes));
  WEFT_TRY(checkAvailable(bytes));
  Fd created(::memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!created)
    return Status::error(Code::SystemError,
                         text("memfd_create: ", std::strerror(errno),
                              "; fix: raise the limit of open files (ulimit -n), or let seccomp"
                              " permit the call"));
  WEFT_TRY(allocate(created.get(), bytes));
  if (::fcntl(created.get(), F_ADD_SEALS, kSeals) != 0)
    return Status::error(Code::SystemError,
                         text("cannot seal shared memory: ", std::strerror(errno)));
  *memory = std::move(created);
  return {};
}

Status checkMemory(const Fd& memory, std::size_t bytes) {
  struct stat info {};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (::fstat(memory.get(), &info) == 0 && static_cast<std::size_t>(info.st_size) == bytes &&
      seals >= 0 && (seals & kSeals) == kSeals)
    return {};
  return Status::error(Code::InternalError,
                       text("shared memory of ", info.st_size, " bytes, seals ", seals,
                            ", instead of ", bytes, " bytes sealed against change"));
}

}  // namespace weft
