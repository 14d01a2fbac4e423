// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding (Sennrich, Haddow, Birch, ACL 2016): pairs of neighbours are joined, that of the lowest rank
// first, until no pair has a rank. Of pairs of one rank the leftmost comes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace weft::tokens {

class BytePairs {
 public:
  // The next rank: (left, right) become `joined`. Says false, and adds nothing, if that pair has a rank.
  bool add(int32_t left, int32_t right, int32_t joined);

  // Joins what can be. Takes n log n for n symbols.
  void join(std::vector<int32_t>& symbols) const;

 private:
  struct Rule {
    uint32_t rank;
    int32_t joined;
  };
  struct Line;  // of symbols that are being joined

  const Rule* ruleOf(int32_t left, int32_t right) const;

  std::unordered_map<uint64_t, Rule> rules_;
};

}  // namespace weft::tokens
