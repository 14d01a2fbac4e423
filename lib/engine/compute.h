// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_aligned.h"
#include "engine/peer_buffers.h"
#include "plan/epilogue.h"
#include "plan/plan.h"

namespace weft::engine {

// Runs the ops of a plan that touch bytes: copies, folds, and stores into peers' buffers. No
// allocation once warm. One thread at a time.
class alignas(base::kCacheAligned) Compute {
 public:
  // `base` has the addresses of In, Out, Arena, Arrivals and Ring, by Base.
  struct Frame {
    const plan::Plan& plan;
    std::byte* const* base;
    const void* scalar;        // pre-multiply
    plan::Epilogue* epilogue;  // of a plan that has one
    std::uint64_t shift;       // where the segment starts in a block, in bytes
    std::uint64_t published;   // where, in a window, the places of Base::Published begin
  };

  explicit Compute(PeerBuffers& peers, std::uint32_t ranks);

  // Runs `op` on its bytes from `from` to `end`. False: a CMA copy failed, the transport's
  // lastError() says why.
  bool run(const Frame& frame, const plan::BoundOp& op, std::uint64_t from, std::uint64_t end);
  std::size_t bytes() const { return fetched_ ? sources_.size() * plan::kTileBytes : 0; }

 private:
  // A piece of an op: all of it where every buffer is mapped here, else as much as CMA copies at
  // once. The resolvers find the piece's sources_, and its targets_ and far_.
  struct Piece {
    const Frame& frame;
    const plan::BoundOp& op;
    std::uint64_t from;
    std::uint64_t bytes;

    std::size_t count() const { return bytes / frame.plan.elementBytes; }
    std::uint64_t divisor() const { return op.finish ? frame.plan.divisor : 1; }
    std::uint64_t publishedAt(const plan::Place& place) const {
      return frame.published + place.offset + from;
    }
    std::byte* own(const plan::Place& place) const {
      std::byte* const base = frame.base[static_cast<unsigned>(place.base)];
      return base != nullptr ? base + place.offset + from : nullptr;  // an epilogue's may be absent
    }
  };

  bool runPiece(const Piece& piece);
  bool findSources(const Piece& piece);
  bool findSource(const Piece& piece, const plan::Place& place, std::uint32_t k);
  void findTargets(const Piece& piece);
  void findTarget(const Piece& piece, const plan::Place& place);
  bool storeFar(const Piece& piece);

  bool streams(const Piece& piece) const { return piece.op.stream && far_.empty(); }
  bool isInPlace(const plan::BoundOp& op) const;  // then the target is in the cache already
  void fold(const Piece& piece);
  void copy(const Piece& piece);
  void runEpilogue(const Piece& piece);
  void copyInTiles(const Piece& piece);
  void foldInTiles(const Piece& piece);
  void foldAway(const Piece& piece);
  void advanceSources(const plan::BoundOp& op, std::uint64_t bytes);
  void copyTo(std::size_t target, std::uint64_t at, const void* from, std::uint64_t bytes);
  void copyToAll(const std::byte* made, std::uint64_t at, std::uint64_t bytes);

  PeerBuffers& peers_;
  base::CacheAlignedVector<const void*> sources_;
  base::CacheAlignedVector<void*> targets_;  // that are mapped here, the op's own first
  base::CacheAlignedVector<reduce::StoreChoice*> stores_;  // to each of them; null: its own memory
  base::CacheAlignedVector<const plan::Place*> far_;       // that are not
  std::vector<std::byte> tile_;                            // of results on their way
  std::unique_ptr<std::byte[]> fetched_;  // a tile a source, made when first needed
};

}  // namespace weft::engine
