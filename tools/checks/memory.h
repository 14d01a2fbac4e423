// SPDX-License-Identifier: Apache-2.0
// Does memory keep what is written to it, and how fast is it?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tools/checks/host.h"

namespace weft::checks {

// Patterns, each followed by its complement: a hash of the word's own address (finds words that
// answer at another address), and a single bit that walks (finds bits that stick to neighbours).
inline constexpr int kPatterns = 4;
void fillPattern(std::span<std::uint64_t> memory, int pattern);

struct Flip {
  std::size_t word = 0;
  std::uint64_t expected = 0, found = 0;
};
std::optional<Flip> findFlip(std::span<const std::uint64_t> memory, int pattern);

// Writes and reads back as much memory as the time allows, `mostBytes` at most, by `threads`.
void checkMemoryPattern(double seconds, unsigned threads, double mostBytes, HostReport& report);

// Bytes read and written a second by copies of all threads at once. Threads that share their cores
// with others find about the same: it is memory that counts.
void checkMemorySpeed(double seconds, unsigned threads, double mostBytes, HostReport& report);

// Errors that the memory controllers could not correct since the host was booted (EDAC).
void checkMemoryErrors(const std::string& root, HostReport& report);

}  // namespace weft::checks
