// SPDX-License-Identifier: Apache-2.0
#pragma once

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

  // Does any live? Any thread.
  static bool live();
};

}  // namespace weft::shm
