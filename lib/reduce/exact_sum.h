// SPDX-License-Identifier: Apache-2.0
// A sum of doubles without any rounding, hence the same in any order and any grouping.
//
// It is for squares of floats: no addend is negative, each is a multiple of 2^-320 below 2^300. The
// sum is kept as integers of weights 2^-320, 2^-288, ...; to add two sums, add these integers. So
// ranks that all-reduce the words of their ExactSum as WEFT_INT64 get one sum whatever the
// sharding. It is good for 2^31 addends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::reduce {

class ExactSum {
 public:
  // 32 bits of the sum each, and, at the end, the number of addends that were not finite.
  static constexpr size_t kWords = 21;
  using Words = std::array<int64_t, kWords>;

  void add(double x);
  void add(const ExactSum& other);
  double value() const;  // rounded to nearest; NaN if an addend was not finite

  Words& words() { return words_; }
  const Words& words() const { return words_; }

 private:
  Words words_{};
};

}  // namespace weft::reduce
