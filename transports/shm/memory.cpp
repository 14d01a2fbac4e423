// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/fd.h"
#include "base/mark.h"
#include "base/text.h"
#include "transports/shm/available.h"

namespace weft::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status outOfMemory(std::size_t bytes, const std::string& why, const char* fix) {
  return Status::error(Code::OutOfMemory, "cannot allocate ", bytes,
                       " bytes of shared memory (memfd): ", why,
                       "; fix: raise the memory limit of this cgroup or container, ", fix);
}

// Growing a file beyond RLIMIT_FSIZE would not only fail but raise SIGXFSZ.
Status checkFileLimit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return {};
  return Status::error(Code::OutOfMemory, "cannot allocate ", bytes,
                       " bytes of shared memory: the file size limit is ", limit.rlim_cur,
                       " bytes; fix: ulimit -f unlimited");
}

int allocate(int memory, int mode, std::size_t offset, std::size_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(memory, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR && WEFT_MARK("shm: fallocate again"));
  return result;
}

}  // namespace

Status createSparseMemory(std::size_t bytes, Fd* memory) {
  WEFT_TRY(checkFileLimit(bytes));
  Fd created(::memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!created)
    return Status::error(
        Code::SystemError, "memfd_create: ", std::strerror(errno),
        "; fix: raise the limit of open files (ulimit -n), or let seccomp permit the call");
  if (::ftruncate(created.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(created.get(), F_ADD_SEALS, kSeals) != 0)
    return Status::error(Code::SystemError, "cannot size and seal ", bytes,
                         " bytes of shared memory: ", std::strerror(errno));
  *memory = std::move(created);
  return {};
}

// The kernel would rather kill a process than refuse pages of a memfd.
Status checkAvailable(std::size_t bytes, const char* fix) {
  const Available available = availableMemory();
  if (bytes <= available.bytes) return {};
  return outOfMemory(bytes, text(available.where, " has ", available.bytes, " bytes left"), fix);
}

// In pieces, because a signal undoes the piece that it comes in, and signals may come steadily.
Status allocatePages(const Fd& memory, std::size_t offset, std::size_t bytes, const char* fix) {
  constexpr std::size_t kPiece = 4 * kHugePage;
  for (std::size_t done = 0; done < bytes; done += kPiece) {
    if (allocate(memory.get(), 0, offset + done, std::min(kPiece, bytes - done)) == 0) continue;
    const int error = errno;
    static_cast<void>(freePages(memory, offset, bytes));
    return outOfMemory(bytes, std::strerror(error), fix);
  }
  return {};
}

Status freePages(const Fd& memory, std::size_t offset, std::size_t bytes) {
  if (allocate(memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0)
    return {};
  return Status::error(Code::SystemError, "cannot free ", bytes,
                       " bytes of shared memory: ", std::strerror(errno));
}

Status checkMemory(const Fd& memory, std::size_t bytes) {
  struct stat info {};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (::fstat(memory.get(), &info) == 0 && static_cast<std::size_t>(info.st_size) == bytes &&
      seals >= 0 && (seals & kSeals) == kSeals)
    return {};
  return Status::error(Code::InternalError, "shared memory of ", info.st_size, " bytes, seals ",
                       seals, ", instead of ", bytes, " bytes sealed against change");
}

Status populatePages(const Fd& memory, std::byte* base, std::size_t offset, std::size_t bytes,
                     const char* fix) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(base + offset, bytes, MADV_POPULATE_WRITE) == 0) return {};
#endif
  return allocatePages(memory, offset, bytes, fix);
}

std::byte* takeRoom(std::size_t bytes) {
  void* const room = ::mmap(nullptr, bytes + kHugePage, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(room);
  const std::size_t gap = -reinterpret_cast<std::uintptr_t>(room) & (kHugePage - 1);
  std::byte* const base = start + gap;
  if (gap != 0) ::munmap(start, gap);
  if (gap != kHugePage) ::munmap(base + bytes, kHugePage - gap);
  return base;
}

// First without access and unlocked: where mlockall(MCL_FUTURE) is in force, the kernel would
// otherwise fill all of it with pages.
bool mapInto(std::byte* room, const Fd& memory, std::size_t bytes, Pages pages) {
  const int kind = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(room, bytes, PROT_NONE, kind, memory.get(), 0) == MAP_FAILED ||
      ::munlock(room, bytes) != 0 || ::mprotect(room, bytes, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    leaveRoom(room, bytes);
    errno = error;
    return false;
  }
  ::madvise(room, bytes, pages == Pages::Huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // a hint
  ::madvise(room, bytes, MADV_DONTDUMP);
  return true;
}

void leaveRoom(std::byte* room, std::size_t bytes) {
  const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(room, bytes, PROT_NONE, kind, -1, 0) != MAP_FAILED)
    ::madvise(room, bytes, MADV_DONTFORK);
}

std::byte* mapSparse(const Fd& memory, std::size_t bytes, Pages pages) {
  std::byte* const room = takeRoom(bytes);
  if (room == nullptr || mapInto(room, memory, bytes, pages)) return room;
  const int error = errno;
  ::munmap(room, bytes);
  errno = error;
  return nullptr;
}

}  // namespace weft::shm
