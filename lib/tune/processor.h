// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft::tune {

// Size of a core's cache of this level, 2 or 3. Where the kernel does not tell it: 1 MiB for level
// 2, 0 for level 3.
std::size_t cacheBytes(int level);

// How many cores share the last-level cache of this machine's first core; 1 where the kernel does
// not tell it.
std::size_t coresOfLastCache();

// "2048K" and the like as sysfs writes them; 0 if malformed.
std::size_t bytesOfCacheSize(const std::string& text);

// How many are in "ff,00000003" as sysfs writes them.
std::size_t coresOfMask(std::string_view mask);

// A core of its own for a thread that works with one on `core`: not a hardware thread of the same
// core, and of the same NUMA node or of another one. -1 if there is none in this container. Asks by
// moving the calling thread there.
enum class Node { Same, Other, Any };
int moveToOtherCore(int core, Node node);

// "Intel(R) Xeon(R) Processor, 2 processors": machines of equal name have equal numbers.
std::string processorName();

}  // namespace weft::tune
