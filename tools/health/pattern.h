// SPDX-License-Identifier: Apache-2.0
// Data that tells by itself whether it is right: word i of the sender's data is a function of the
// run's seed, the sender and i, so that a receiver can check every bit without having been told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::health {

class Pattern {
 public:
  Pattern(std::uint64_t seed, int sender);

  std::uint64_t operator[](std::size_t i) const { return (i + start_) * step_; }
  void fill(std::uint64_t* words, std::size_t count) const;
  // Words of `words` that are not those of the pattern.
  std::size_t countWrong(const std::uint64_t* words, std::size_t count) const;

 private:
  std::uint64_t start_, step_;
};

}  // namespace weft::health
