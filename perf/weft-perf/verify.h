// SPDX-License-Identifier: Apache-2.0
// Compares what a collective delivered with what the recipe says that it must deliver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "perf/weft-perf/recipe.h"

namespace weft::perf {

// How many elements (or bytes) are wrong, and a sentence about the first.
struct CheckResult {
  std::uint64_t wrong = 0;
  std::string first;

  void add(const CheckResult& other) {
    if (wrong == 0) first = other.first;
    wrong += other.wrong;
  }
};

// `got` (of any alignment) must hold elements [from, from + count) of rank `source`'s input, bit by
// bit.
CheckResult verifyMoved(const Recipe& recipe, int source, std::size_t from, std::size_t count,
                        const void* got);

// `got` must hold elements [from, from + count) of the reduction over all ranks: bit by bit for
// Fill::Exact and for max and min, else within the rounding errors that are allowed.
//
// The bound for sums of n terms x in precision u, for any order (Higham, Accuracy and Stability of
// Numerical Algorithms, 4.2): (n - 1) u sum |x|. 16-bit types are added in fp32, which contributes
// that term with fp32's u, and then rounded once: half a unit in the last place of the result. Each
// multiplication (mulsum) and the division (avg) may round once more.
CheckResult verifyReduced(const Recipe& recipe, std::size_t from, std::size_t count,
                          const void* got);

// `bytes` bytes must all be `value`.
CheckResult verifyUntouched(const void* got, std::size_t bytes, unsigned char value,
                            const char* what);

// 64 bits that depend on every bit and its place.
std::uint64_t hashOf(const void* data, std::size_t bytes);

}  // namespace weft::perf
