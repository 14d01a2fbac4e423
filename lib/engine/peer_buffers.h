// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cache_aligned.h"
#include "plan/plan.h"
#include "reduce/store_choice.h"
#include "transports/transport.h"

namespace weft::engine {

// What a rank tells the others in a signal. All signals carry the first field; those that open
// shared buffers carry all of it.
struct Entry {
  std::byte* out = nullptr;  // its address, which makes the signal a clear-to-send for direct puts
  const std::byte* in = nullptr;  // null, as out, where buffers open that no peer touches
  std::uint64_t sharedIn = 0;     // references, see Transport::share; 0: not shared
  std::uint64_t sharedOut = 0;
  std::uint64_t willing = 0;  // 1: what peers touch of my buffers can be reached
};
static_assert(sizeof(Entry) <= transport::kInlineBytes);

// The buffers of the other ranks during one call: memory that is mapped here is read and written
// where it lies, other memory by CMA copies. One thread enters and admits; several may load and
// store then.
class PeerBuffers {
 public:
  explicit PeerBuffers(transport::Transport& transport);

  // What this rank says of its own buffers, at the beginning of a call.
  Entry enter(const plan::Plan& plan, const std::byte* in, std::byte* out) {
    mapped_ = true;
    return plan.opening == 0 ? Entry{.out = out} : open(plan, in, out);
  }
  // Takes down what a peer says; false if it names memory that it does not have.
  bool admit(std::uint32_t peer, const Entry& theirs);

  // Is all that the call touches mapped here?
  bool mapped() const { return mapped_; }
  // Where the place is mapped; null where it is not.
  std::byte* address(const plan::Place& place) const {
    const Buffer& buffer = at(place);
    return buffer.here != nullptr ? buffer.here + place.offset : nullptr;
  }

  // The windows where that peer publishes, and where this rank does.
  const std::byte* published(std::uint32_t peer) const { return transport_.mapped(peer); }
  std::byte* publishes() const { return transport_.own().base(); }
  // How stores to that peer's buffers go, where they are mapped; of this rank, to what it publishes.
  reduce::StoreChoice& storesTo(std::uint32_t peer) { return stores_[peer]; }

  // The same of what is folded into them.
  reduce::FoldChoice& foldsTo(std::uint32_t peer) { return folds_[peer]; }

  // `bytes` of a place that is not mapped, into `to`. False: the transport's lastError() says why.
  bool load(const plan::Place& place, std::uint64_t from, std::byte* to, std::size_t bytes);
  // Into a place that is not mapped.
  bool store(const plan::Place& place, std::uint64_t from, const std::byte* src, std::size_t bytes);

 private:
  Entry open(const plan::Plan& plan, const std::byte* in, std::byte* out) const;

  struct Buffer {
    std::byte* here = nullptr;  // where it is mapped, or
    std::uint64_t there = 0;    // its address in the peer's own memory
  };
  const Buffer& at(const plan::Place& place) const {
    return place.base == plan::Base::PeerIn ? in_[place.peer] : out_[place.peer];
  }

  transport::Transport& transport_;
  base::CacheAlignedVector<Buffer> in_, out_;  // by rank
  std::vector<reduce::StoreChoice> stores_;    // by rank, this one for what it publishes
  std::vector<reduce::FoldChoice> folds_;
  bool mapped_ = true;
};

}  // namespace weft::engine
