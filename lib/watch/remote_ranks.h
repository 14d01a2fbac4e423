// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "transports/window.h"

namespace weft::watch {

// `what` of a call in a mirror of which only the fingerprint is known.
inline constexpr std::uint64_t kUnknownWords = ~std::uint64_t{0};

// What a Watch needs of ranks that share no memory with this one. Their control pages are mirrors
// in this process, which are refreshed when somebody asks; the first error is this process's copy
// of the one that all ranks have agreed on. lib/control implements it. Any thread.
class RemoteRanks {
 public:
  virtual ~RemoteRanks() = default;

  virtual transport::FirstError& firstError() = 0;
  // Hands in a cause and waits until firstError() is published, with this cause or an earlier one.
  // Bounded: after a quarter of a second nobody could be asked, and firstError() may still be None.
  virtual void propose(const Status& cause) = 0;

  // Has the mirrors refreshed, which takes a few milliseconds: what each rank did last, and its
  // newest call. Waits for it as long as `patience`.
  virtual void refresh(std::chrono::milliseconds patience) = 0;
  // An error once a rank is gone that has not said good-bye, and why. Its mirror may be older than
  // the last that it did.
  virtual Status ended(std::uint32_t rank) const = 0;
  // For how long that rank has owed an answer; 0 below a second.
  virtual std::chrono::milliseconds silence(std::uint32_t rank) const = 0;
  // The first call that not all ranks have made alike, as far as they have told, and which all
  // mirrors have; 0: there is none.
  virtual std::uint64_t parting() const { return 0; }
  // False while the newest refresh does not tell yet whether all have made the same calls.
  virtual bool knowsAgreement() const { return true; }

  // After a lost link: all-gather between all ranks, to recover from it. Fails once a rank that is
  // missing has ended or left, or a worse error takes its place.
  virtual Status gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all,
                        Deadline deadline) = 0;
  // What has taken the place of a lost link as the first error, if anything: propose() of any other
  // cause does that, on all ranks.
  virtual Status overruled() const = 0;

  // This rank makes no further call. Tells the others; does not wait.
  virtual void leave() = 0;
};

}  // namespace weft::watch
