// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/status.h"

// Cross-memory attach: stores into the memory of another process of the same user by address.
namespace weft::mapped {

struct Process {
  pid_t pid = 0;   // as this process sees it
  int pidfd = -1;  // tells whether that pid still is that process
};

// Both check first that the process still lives, so that a recycled pid is never touched. The
// errors name errno, pid and the fix; the process's rank is for the caller to add.
Status writeMemory(const Process& to, std::uint64_t address, const void* from, std::size_t bytes);
Status readMemory(const Process& from, std::uint64_t address, void* to, std::size_t bytes);

// Where Yama lets only ancestors attach to a process (kernel.yama.ptrace_scope = 1): while any of
// these lives, all processes of this user may attach to this one. Any thread.
class AttachPermit {
 public:
  AttachPermit();
  ~AttachPermit();
  AttachPermit(const AttachPermit&) = delete;
  AttachPermit& operator=(const AttachPermit&) = delete;

  bool isNeeded() const { return needed_; }

 private:
  const bool needed_;
};

}  // namespace weft::mapped
