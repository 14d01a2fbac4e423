// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/team_work.h"
#include "plan/epilogue.h"
#include "shard/fold.h"

namespace weft::shard {

// What a rank does with its elements beside its calls: its team shares that, as it does the ops of
// calls. Pieces are whole tiles, which end on the grid of exact sums, so that the bits are those of
// one thread. One thread at a time.
class OwnWork {
 public:
  explicit OwnWork(const engine::Crew& crew) : work_(crew) {}

  std::uint32_t threads() const { return work_.members(); }

  // body(thread, from, end) of so many elements, each with `bytes` that are read or written.
  template <class Body>
  void share(std::uint64_t elements, double bytes, const Body& body) {
    const double ns = nsOf(elements, bytes);
    const engine::TeamWork::Call call(work_, ns);
    shareIn(work_.piecesFor(ns), elements, body);
  }

  // What an epilogue does with them, tile by tile: body(epilogue of the thread, from, count).
  template <class Body>
  void run(plan::Epilogue& epilogue, std::uint64_t elements, double bytes, const Body& body) {
    const double ns = nsOf(elements, bytes + epilogue.bytesBeside());
    const engine::TeamWork::Call call(work_, ns);
    shareIn(plan::threadsOf(epilogue, work_.piecesFor(ns)), elements,
            [&](std::uint32_t thread, std::uint64_t from, std::uint64_t end) {
              plan::Epilogue& mine = *epilogue.ofThread(thread);
              for (; from < end; from += kFoldTile)
                body(mine, from, std::min<std::uint64_t>(kFoldTile, end - from));
            });
  }

 private:
  double nsOf(std::uint64_t elements, double bytes) const {
    return work_.copyNs(elements) * bytes / 2;
  }
  template <class Body>
  void shareIn(std::uint32_t pieces, std::uint64_t elements, const Body& body) {
    if (pieces < 2) return body(0, 0, elements);
    const auto all = [&](std::uint32_t thread, std::uint64_t from, std::uint64_t end) {
      body(thread, from, end);
      return true;
    };
    (void)work_.share(pieces, elements, all, kFoldTile);
  }

  engine::TeamWork work_;
};

}  // namespace weft::shard
