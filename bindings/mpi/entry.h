// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <weft/weft.h>

#include <cstddef>
#include <new>

#include "calls.h"
#include "communicators.h"

namespace weft::mpi {

// What MPI refuses is left to the library below, which says so as its users know it.
inline bool isRankOf(const Attached& a, int root) { return root >= 0 && root < a.ranks; }
inline bool isCount(int count) { return count >= 0; }
inline bool areCounts(const Attached& a, const int* counts) {
  if (counts == nullptr) return false;
  for (int r = 0; r < a.ranks; ++r)
    if (!isCount(counts[r])) return false;
  return true;
}
inline bool isInPlace(const void* buffer) { return buffer == MPI_IN_PLACE; }
inline std::size_t sizeOf(int count) { return static_cast<std::size_t>(count); }

// A collective: `here(attached)` on weft, unless there is a reason `why(attached)` why not, or else
// `below()`. Why::Count_: there is none.
template <class Reason, class Here, class Below>
int collective(Name name, MPI_Comm comm, const Reason& why, const Here& here, const Below& below) {
  const Attached* const a = attachedTo(comm);
  const Why reason = a == nullptr ? Why::Arguments : a->comm == nullptr ? a->why : why(*a);
  if (reason != Why::Count_) {
    countBelow(name, reason);
    return below();
  }
  countHere(name);
  try {
    return resultOf(comm, *a, here(*a));
  } catch (const std::bad_alloc&) {
    return resultOf(comm, *a, weftOutOfMemory);
  }
}

inline Why refusedUnless(bool isGood) { return isGood ? Why::Count_ : Why::Arguments; }

}  // namespace weft::mpi
