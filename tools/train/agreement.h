// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/train/failure.h"
#include "weft/weft.hpp"

namespace weft::train {

// A failure that every rank found out about in the same step, so that one of them may speak for
// all.
class SharedFailure : public Failure {
 public:
  using Failure::Failure;
};

// Collective: throws SharedFailure unless `value`, a fingerprint of `what`, is rank 0's on every
// rank; or that of rank like[r] on rank r.
void agree(Communicator& team, const std::string& what, uint64_t value, Exit code = Exit::kData,
           const std::vector<size_t>& like = {});

// Collective: rank 0 does it for all. Its Failure, or that it cannot write, is a SharedFailure on every rank.
void onRankZero(Communicator& team, const std::function<void()>& work);

}  // namespace weft::train
