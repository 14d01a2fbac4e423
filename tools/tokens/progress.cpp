// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace weft::tokens {
namespace {

constexpr auto kOnTerminal = std::chrono::milliseconds(200),
               kElsewhere = std::chrono::milliseconds(10000);

}  // namespace

std::string progressLine(uint64_t bytes, uint64_t all, uint64_t documents, uint64_t tokens,
                         double seconds) {
  const double done = static_cast<double>(bytes), whole = static_cast<double>(std::max(all, bytes));
  const double rate = done / std::max(seconds, 1e-3);
  const auto left = std::lround((whole - done) / std::max(rate, 1.0));
  return fmt::format(
      "{:.1f} of {:.1f} MB ({:.0f} %), {} documents, {} tokens, {:.1f} MB/s, {}:{:02} left",
      done / 1e6, whole / 1e6, 100 * done / std::max(whole, 1.0), grouped(documents),
      grouped(tokens), rate / 1e6, left / 60, left % 60);
}

Progress::Progress(uint64_t bytes, bool quiet)
    : all_(bytes), quiet_(quiet), onTerminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_ && onTerminal_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(uint64_t bytes, uint64_t documents, uint64_t tokens) {
  const Clock::time_point now = Clock::now();
  if (quiet_ || now - last_ < (onTerminal_ ? kOnTerminal : kElsewhere)) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::string line = progressLine(bytes, all_, documents, tokens, seconds);
  if (onTerminal_)
    fmt::print(stderr, "\r\x1b[K{}", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

}  // namespace weft::tokens
