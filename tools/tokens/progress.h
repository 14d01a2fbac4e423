// SPDX-License-Identifier: Apache-2.0
// A line that says how far the work is, and when it will be done.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tools/train/reports/words.h"

namespace weft::tokens {

// On standard error: on a terminal in place, several times a second; elsewhere a line every ten seconds.
class Progress {
 public:
  Progress(uint64_t bytes, bool quiet);
  ~Progress();  // leaves the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // So many bytes are done, of all.
  void show(uint64_t bytes, uint64_t documents, uint64_t tokens);

 private:
  using Clock = std::chrono::steady_clock;

  const uint64_t all_;
  const bool quiet_, onTerminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  bool shown_ = false;
};

// "31.4 of 120.0 MB (26 %), 1,024 documents, 9,876,543 tokens, 12.3 MB/s, 0:07 left"
std::string progressLine(uint64_t bytes, uint64_t all, uint64_t documents, uint64_t tokens,
                         double seconds);

using train::grouped;

}  // namespace weft::tokens
