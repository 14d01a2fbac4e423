// SPDX-License-Identifier: Apache-2.0
// Test data that nobody has to store: element i of rank r's input is a hash of (seed, r, i), so
// that any rank computes any element of the expected result when it needs it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perf/weft-perf/types.h"

namespace weft::perf {

enum class Fill {
  Exact,   // the result is representable whatever the order of the additions: compare bits
  Random,  // full mantissas: compare with a wider reference, within a bound on the rounding errors
  Ones,    // easy to read; compared as random data
};
const char* nameOf(Fill fill);

struct Recipe {
  weftDataType_t type;
  Op op;
  int ranks;
  Fill fill;
  std::uint32_t seed;
  // Roundings of a 16-bit sum: 1 as weft.h promises, ranks - 1 for a forced algorithm that hands
  // partial sums on.
  int halfRoundings = 1;

  // Whether Fill::Random would be a different test from Fill::Exact.
  bool hasRandomForm() const;
};

// Writes elements [begin, begin + count) of `rank`'s input to `out`, of any alignment.
void drawInput(const Recipe& recipe, int rank, std::size_t begin, std::size_t count, void* out);

// The rank's scalar of Op::MulSum, of the recipe's type, as weftRedOpCreatePreMulSum takes it.
struct Scalar {
  alignas(8) unsigned char bytes[8] = {};
};
Scalar preMultiplier(const Recipe& recipe, int rank);

}  // namespace weft::perf
