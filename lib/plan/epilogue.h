// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::plan {

// What a call with RedOp::Epilogue does with complete sums, in place of storing them, as the
// epilogue of a reduce-scatter of gradients, or a whole optimizer step between a reduce-scatter and
// an all-gather.
//
//   ReduceScatter  each rank's epilogue gets the addends of its own block; Out may be absent
//   AllGather      the epilogue makes this rank's block; In may be absent and is never read
//   AllReduce      both: the epilogue turns the addends of this rank's block into what all
//                  ranks get. The call's count is that of one block, and In and Out hold a block
//                  for each rank.
//
// Every element of the block is handed over exactly once a call, in pieces of any size and order:
// the pieces of a message are made and sent in turn, while links and cores are busy with others.
class Epilogue {
 public:
  Epilogue() = default;
  Epilogue(const Epilogue&) = delete;
  Epilogue& operator=(const Epilogue&) = delete;
  virtual ~Epilogue() = default;

  // Elements first .. first + count - 1 of this rank's block. `addends`, of the call's type, are
  // the inputs of all ranks in rank order, except that between nodes an algorithm may have added
  // some before; of an all-gather there is one, which must not be read. `result`, of the call's
  // type, is where the new values go: count elements, not initialised; null without an Out.
  virtual void run(void* result, std::span<const void* const> addends, std::uint64_t first,
                   std::size_t count) = 0;

  // The same of a large message, whose results nobody reads soon: straight to all places where they
  // go, past the caches. False, and nothing is done, if this epilogue cannot: then run() makes
  // them.
  virtual bool runToAll(std::span<void* const> results, std::span<const void* const> addends,
                        std::uint64_t first, std::size_t count) {
    (void)results, (void)addends, (void)first, (void)count;
    return false;
  }

  // What runs pieces of the same call on the rank's thread number k, while this one does on the
  // first; null if all pieces are for one thread. Asked for by the first thread before the others are.
  virtual Epilogue* ofThread(std::uint32_t k) { return k == 0 ? this : nullptr; }

  // What it reads and writes of each element beside addends and results: how many threads that is
  // worth.
  virtual double bytesBeside() const { return 0; }
};

// For how many threads an epilogue has one of its kind, at most so many.
inline std::uint32_t threadsOf(Epilogue& epilogue, std::uint32_t most) {
  std::uint32_t threads = 1;
  while (threads < most && epilogue.ofThread(threads) != nullptr) ++threads;
  return threads;
}

}  // namespace weft::plan
