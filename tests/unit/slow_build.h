// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

namespace weft::test {

// Is this a build whose tests sweep less: with a sanitizer, or with a library that is not optimized (a release's is, its
// tests are not)?

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
inline constexpr bool kSlowBuild = true;
#else
inline constexpr bool kSlowBuild = false;
#endif

// Does somebody who has the time want all sizes swept (./dev soak proofs)?
inline bool sweepsAll() { return std::getenv("TEST_SWEEPS_ALL") != nullptr; }

// Of numbers of ranks, those that are swept each time: to 9, about each power of two, and multiples of 12.
inline bool isSwept(std::uint32_t n) {
  const auto isPowerOfTwo = [](std::uint32_t k) { return (k & (k - 1)) == 0; };
  return n <= 9 || isPowerOfTwo(n - 1) || isPowerOfTwo(n) || isPowerOfTwo(n + 1) || n % 12 == 0 ||
         sweepsAll();
}

}  // namespace weft::test
