// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/status.h"
#include "transports/mapped/handle.h"

// Shared memory without a name: memfd, sealed so that its size is final. Nothing appears in
// /dev/shm and nothing is left behind however the process ends.
namespace weft {

// All pages are allocated at once, near the calling thread: a lack of memory is an error here,
// never a SIGBUS later.
Status createMemory(std::size_t bytes, Fd* memory);

// Is it exactly `bytes` long, and can its sender no longer change that?
Status checkMemory(const Fd& memory, std::size_t bytes);

}  // namespace weft
