// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "plan/tuning.h"
#include "schedule/registry.h"

namespace weft::plan {

// How many arrival slots every rank keeps for each of its peers: as many as the registry's
// algorithms need on these ranks, with their transforms. Counted in the programs of a few ranks,
// which stand for all others.
std::uint32_t arrivalsPerPeer(const Tuning& tuning);

// InvalidUsage if `algorithm` needs more of them than a communicator is ready to keep: two levels
// of very uneven nodes do.
Status checkArrivals(const schedule::Algorithm& algorithm, const Tuning& tuning);

}  // namespace weft::plan
