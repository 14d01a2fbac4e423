// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

// Two threads that each store and then load what the other one stores: at least one must see the
// other's store, so each needs a fence in between. Where one of them does so all the time and the other
// one hardly ever, the latter pays for both: its heavyFence(), by membarrier(2), makes every running
// thread of every registered process execute a full barrier, and a lightFence() need stop only the
// compiler. A full one, or any locked instruction, waits until all earlier stores are done, and so for
// lines that other cores hold.
//
// Why one of the two always sees the other: the barrier comes at some point of the light one's program.
// If that is before its load, it sees what was stored before the heavy fence. Else it is after its store,
// which is seen after the heavy fence. The kernel orders it against what its caller does before and
// after; a thread that is not running passes a full barrier when it is scheduled.
namespace weft::inline base {

// ThreadSanitizer knows no fences.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kTsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kTsan = true;
#else
inline constexpr bool kTsan = false;
#endif
#else
inline constexpr bool kTsan = false;
#endif

// Registers this process when first asked. False: it has none (an old kernel, seccomp, TSan), and both
// sides must fence. Any thread.
bool hasHeavyFences();
inline void lightFence() { std::atomic_signal_fence(std::memory_order_seq_cst); }
// Some microseconds. Nothing where there are none.
void heavyFence();

}  // namespace weft::inline base
