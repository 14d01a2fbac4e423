// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "world.h"

namespace weft::testing {

// An endless sequence of calls, different in kind and size, the same on every rank that has the
// same seed. The values are not checked: this is for tests of what happens around calls.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed, std::size_t maxCount = std::size_t{1} << 15)
      : random_(seed), maxCount_(maxCount) {}

  // Makes the next call.
  weftResult_t next(const Rank& rank, weftStream_t stream = nullptr);

  static constexpr int kKinds = 11;
  // A call of one kind, 0 to kKinds - 1, with `count` floats a block.
  weftResult_t call(int kind, std::size_t count, const Rank& rank, weftStream_t stream = nullptr,
                    const weftOpts_t* opts = nullptr);

 private:
  std::mt19937_64 random_;
  std::size_t maxCount_;
  std::vector<float> in_, out_;
};

}  // namespace weft::testing
