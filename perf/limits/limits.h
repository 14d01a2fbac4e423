// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tune/machine.h"

// What a rank has and does at a number of ranks, by the functions that communicators are made with,
// but without the ranks.
namespace weft::tools {

// One call, as the busier of the first two ranks runs it.
struct CallLimits {
  std::string algorithm;
  std::size_t planBytes = 0;
  double planMs = 0;            // of the processor: to decide and to bind
  std::uint64_t messages = 0;   // that the rank sends
  std::uint64_t remote = 0;     // of those, to other hosts
  std::uint64_t sentBytes = 0;  // in messages
};

struct Limits {
  std::uint32_t ranks = 0;
  std::string refused;              // why there can be no such communicator; else empty
  std::size_t windowBytes = 0;      // address space: pages come with what is used
  std::size_t createdBytes = 0;     // of those, what has pages from the beginning
  std::size_t keptDescriptors = 0;  // for the ranks of its host, and while they meet
  std::size_t mostDescriptors = 0;
  CallLimits barrier, shortSum, longSum;
};

inline constexpr std::size_t kShortBytes = 8, kLongBytes = std::size_t{64} << 20;

// Of hosts with so many ranks each, a core for each, and links that no file describes.
Limits limitsOf(std::uint32_t ranks, std::uint32_t localRanks, const tune::Machine& machine);

// A column of the table, and its cell in the row of each number of ranks.
struct Column {
  std::string_view title;
  std::string (*cell)(const Limits& limits);
};
const std::vector<Column>& columns();

// In Markdown, as in docs/architecture.md.
std::string tableOf(const std::vector<Limits>& rows);

}  // namespace weft::tools
