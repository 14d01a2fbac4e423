// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/fd.h"
#include "base/status.h"

// Shared memory without a name: memfd, sealed so that its size is final. Nothing appears in
// /dev/shm and nothing is left behind however the process ends.
namespace weft::shm {

// Without pages: they come with allocatePages(), or with the first access, where a lack of memory is
// a SIGBUS.
Status createSparseMemory(std::size_t bytes, Fd* memory);

// Can `bytes` more be allocated without the kernel killing a process? `fix` ends the error's text.
Status checkAvailable(std::size_t bytes, const char* fix);
// Gives pages near the calling thread to a part of the memory: all of it or, with an error, none.
Status allocatePages(const Fd& memory, std::size_t offset, std::size_t bytes, const char* fix);
// Takes them away again, wherever they are mapped. The next ones are zero.
Status freePages(const Fd& memory, std::size_t offset, std::size_t bytes);

// Is it exactly `bytes` long, and can its sender no longer change that?
Status checkMemory(const Fd& memory, std::size_t bytes);

// The same for what is mapped from `base` on, through that mapping where the kernel can: it gives
// huge pages where they are given on advice only, enters pages into the page table, and many may do
// it at once. With an error, some.
Status populatePages(const Fd& memory, std::byte* base, std::size_t offset, std::size_t bytes,
                     const char* fix);

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Addresses alone, at a multiple of kHugePage: nullptr with errno.
std::byte* takeRoom(std::size_t bytes);
// Maps all of a sparse memory, without any page, into room that was taken: false with errno. Pages
// that come later may be huge, where the kernel gives such on advice, or are all small.
enum class Pages { Huge, Small };
bool mapInto(std::byte* room, const Fd& memory, std::size_t bytes, Pages pages);
// Makes it room alone again.
void leaveRoom(std::byte* room, std::size_t bytes);
// Both at once: nullptr with errno.
std::byte* mapSparse(const Fd& memory, std::size_t bytes, Pages pages);

}  // namespace weft::shm
