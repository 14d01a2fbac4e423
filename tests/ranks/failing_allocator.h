// SPDX-License-Identifier: Apache-2.0
// operator new of this process, which can be told to fail: for programs that are linked with it.
#pragma once

#include <cstdint>

namespace weft::testing {

// The n-th allocation from now on fails, whichever thread makes it, and no other; none if n is 0.
void failAllocation(std::int64_t n);
void failAllocationOf(const char* thread, std::int64_t n);  // of threads of this name alone
// That one and all that follow.
void failAllocationsFrom(std::int64_t n);
// No more of that. Whether one has failed.
bool stopFailing();

}  // namespace weft::testing
