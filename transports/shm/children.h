// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::shm {

// The forked children of this process, which see some memory as it was: while one of them lives, its
// place in the heap must not be used for anything else. Each child inherits the end of a pipe, which
// closes when it and all that it forked have ended or run another program.
class Children {
 public:
  // Around fork(), on the thread that forks.
  static void beforeFork();
  static void inParent();
  static void inChild();

  // How many forks there have been. Any thread.
  static std::uint64_t forks();
  // Does a child live that was forked after there had been so many? Any thread.
  static bool live(std::uint64_t since = 0);
};

}  // namespace weft::shm
