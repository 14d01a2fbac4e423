// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::inline base {

// Has this core take the lines of such memory from those that hold them, and does not wait for them: stores that
// come later need not either. Only a hint; it never faults. By name, as compilers make another prefetch of the
// builtin for processors of which some have none that is meant for stores.
inline void claimLines(const void* memory, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const char* line = static_cast<const char*>(memory);
  for (const char* const end = line + bytes; line < end; line += kLine) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1, 3);
#endif
  }
}

}  // namespace weft::inline base
