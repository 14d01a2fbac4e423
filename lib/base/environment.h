// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <shared_mutex>
#include <string>

#include "base/no_fork.h"

namespace weft::inline base {

// The environment of this process. No thread may read it while another writes it (setenv(3)), and
// libraries that weft loads, libfabric and PMIx, do write it when they start: so weft's own threads
// read it through here only, and keep apart from those that start a library.

// The variable's value; empty if it is not set.
std::string environment(const char* name);

// While one lives no other thread of weft reads or writes the environment; nor may this one read.
class WritingEnvironment {
 public:
  WritingEnvironment();

 private:
  NoFork noFork_;
  std::unique_lock<std::shared_mutex> alone_;
};

}  // namespace weft::inline base
