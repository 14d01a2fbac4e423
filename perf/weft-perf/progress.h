// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace weft::perf {

// A line on the terminal that says what is being done, overwritten and at last erased. Nothing is
// written if standard error is no terminal.
class Progress {
 public:
  ~Progress() { clear(); }

  void show(const std::string& text) {
    if (!terminal_) return;
    fmt::print(stderr, "\r{:<{}}", text, shown_);
    std::fflush(stderr);
    shown_ = text.size();
  }

  void clear() {
    if (shown_ == 0) return;
    fmt::print(stderr, "\r{:{}}\r", "", shown_);
    std::fflush(stderr);
    shown_ = 0;
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::size_t shown_ = 0;
};

}  // namespace weft::perf
