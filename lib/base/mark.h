// SPDX-License-Identifier: Apache-2.0
#pragma once

// What tests have met: each error text, each line of the log and each WEFT_MARK("name") at a way out
// of trouble. tests/house/marks.py lists those that no test meets. Only the build asan has it.
#ifdef WEFT_MARKS
#include <string_view>

namespace weft::inline base {
// True, so that it may end a condition. Leaves errno alone, never fails and never allocates.
bool mark(std::string_view text) noexcept;
}  // namespace weft::inline base
#define WEFT_MARK(text) ::weft::mark(text)
#else
#define WEFT_MARK(text) true
#endif
