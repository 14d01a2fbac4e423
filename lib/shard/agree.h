// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "comm/communicator.h"

namespace weft {

// Among the ranks of one communicator, null for one rank alone. Collective, in turn.

// The same on all ranks: the error of the lowest rank that has one.
Status agreeOn(Communicator* ranks, const Status& mine, int timeoutMs);
// What root has, for all; `bytes` is equal on all ranks.
Status shareFrom(Communicator* ranks, std::uint32_t root, void* data, std::size_t bytes,
                 int timeoutMs);
// `bytes` of each rank, in rank order.
Status shareAll(Communicator* ranks, const void* mine, std::size_t bytes, void* all, int timeoutMs);

}  // namespace weft
