// SPDX-License-Identifier: Apache-2.0
// Numbers as nccl-tests reads and prints them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::perf {

// Right-aligned in `width` characters: as many of two decimals as fit, else an exponent. Values are
// never negative. nccl-tests' rule, except that a value that rounds up to one more digit still
// fits.
std::string fitted(double value, int width);

// "8", "64K", "1.5m", "2G" in bytes, 1024-based. Throws std::invalid_argument with a sentence.
std::size_t parseSize(const std::string& text);

// 2.00 KB, 17.5 MB, ... with 1024-based units, as nccl-tests' memory report.
std::string memoryText(std::size_t bytes);

// The sizes of a run from `first` to `last`: multiplied by `factor` if that is over 1, else `step`
// apart. 0 is a legal first size; since no factor leaves it, 8 follows.
std::vector<std::size_t> sizeSweep(std::size_t first, std::size_t last, std::size_t step,
                                   std::size_t factor);

}  // namespace weft::perf
