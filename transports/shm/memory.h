// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/fd.h"
#include "base/status.h"

// Shared memory without a name: memfd, sealed so that its size is final. Nothing appears in
// /dev/shm and nothing is left behind however the process ends.
namespace weft::shm {

// The pages of the first `atOnce` bytes are allocated now, near the calling thread: a lack of
// memory is an error here, never a SIGBUS later. The rest is sparse.
Status createMemory(std::size_t bytes, std::size_t atOnce, Fd* memory);
// Without pages: they come with allocatePages(), or with the first access.
Status createSparseMemory(std::size_t bytes, Fd* memory);

// Can `bytes` more be allocated without the kernel killing a process? `fix` ends the error's text.
Status checkAvailable(std::size_t bytes, const char* fix);
// Gives pages to a part of the memory: all of it or, with an error, none.
Status allocatePages(const Fd& memory, std::size_t offset, std::size_t bytes, const char* fix);
// Takes them away again, wherever they are mapped. The next ones are zero.
Status freePages(const Fd& memory, std::size_t offset, std::size_t bytes);

// Is it exactly `bytes` long, and can its sender no longer change that?
Status checkMemory(const Fd& memory, std::size_t bytes);

// Maps all of a sparse memory at a multiple of kHugePage, without any page: nullptr with errno.
std::byte* mapSparse(const Fd& memory, std::size_t bytes);
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace weft::shm
