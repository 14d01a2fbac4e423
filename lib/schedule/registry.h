// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "forest/forest.h"
#include "schedule/ir.h"

// The list of all algorithms. To add one, write its generator in a file of its own and one line in
// registry.cpp: choosing, proving and explaining then know it, and communicators keep as many
// arrival slots as it needs.
namespace weft::schedule {

struct Shape {
  uint32_t ranks = 1;
  uint32_t root = 0;        // rooted collectives
  uint32_t localRanks = 1;  // two-level algorithms: ranks per node, a divisor of ranks, or
  std::vector<uint32_t> nodeOf = {};                     // by rank: its node, for Levels::Two alone
  std::shared_ptr<const forest::Links> links = nullptr;  // null: each pair of ranks has its own
};

// In which order a sum is formed. Either way, all ranks that get it get the same bits.
enum class SumOrder : uint8_t {
  None,       // nothing is added
  Rank,       // ((x0 + x1) + x2) + ..., rounded once: the same bits from every such algorithm
  Algorithm,  // fixed by the algorithm and the shape
};

// Which nodes an algorithm is for.
enum class Levels : uint8_t {
  One,      // it knows of none
  Two,      // any
  TwoEven,  // of equal size, rank = node * localRanks + local rank
  Links,    // any: it is made for the very links, and only where they are known
};

inline constexpr uint32_t kForced = ~0u;  // never by itself
inline constexpr uint32_t kMany = 16;     // fewer ranks send to each other at once

struct Algorithm {
  std::string_view name;  // unique within its collective
  Collective collective;
  Schedule (*make)(const Shape&);
  // From how many ranks on the model may choose it: on one host of up to 256 ranks, where the choice
  // must not change a sum, only if it adds in rank order. Of a collective's automatic algorithms the one
  // for the shortest messages stands first.
  uint32_t automaticFrom = kForced;
  SumOrder order = SumOrder::None;
  Levels levels = Levels::One;
  bool shared = false;  // reaches into the buffers of peers; complete as it is, no transforms
  // A rank puts the same to all its peers, one after the other: it may be published (transforms.h).
  bool alike = false;
  bool pulls = false;  // of shared buffers: it reads its peers' In, and stores to no others

  // A rank sends to few of the others, in steps whose number is a logarithm.
  bool reachesFew() const { return automaticFrom == kMany; }
};

std::span<const Algorithm> algorithms();

// Puts another list in its place until it is put back, and returns the one before: for tests, which
// add algorithms of their own, before there are communicators.
std::span<const Algorithm> exchangeAlgorithms(std::span<const Algorithm> list);

// nullptr if there is none of that name.
const Algorithm* findAlgorithm(Collective collective, std::string_view name);

}  // namespace weft::schedule
