// SPDX-License-Identifier: Apache-2.0
#include "base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mark.h"
#include "base/no_fork.h"

namespace weft::inline base {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

bool registerForFences() {
  const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
                          membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
  (void)WEFT_MARK(registered ? "membarrier" : "no membarrier");
  return registered;
}

}  // namespace

bool hasHeavyFences() {
  if constexpr (kTsan) return false;
  return processWide<bool>(registerForFences);
}

void heavyFence() { membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }

}  // namespace weft::inline base
