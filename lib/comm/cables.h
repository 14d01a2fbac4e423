// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/deadline.h"
#include "base/status.h"
#include "comm/core.h"

namespace weft::comm {

// A mesh in which some pairs of ranks have lost their cable, and are joined in another way: its
// collectives may run along trees over the cables that live (lib/forest), if that is faster.

// Before the transport is made, as the trees need arrival slots: which cables live. Leaves
// tuning->links null where all do, or where there is no mesh.
void settleTrees(const Core::Basis& basis, plan::Tuning* tuning);

// Where there are such trees: how fast cables and the ways around lost ones are, as measured now, in
// some milliseconds. Leaves that in tuning.costs.cables, by which the model chooses, and trees for
// cables of that rate in tuning.links; none where a way could not be measured, which is nobody's
// error: a link that is down fails the next call. Collective, before the first call.
Status timeCables(const transport::TransportSetup& setup, Deadline deadline, Core::Parts* parts);

}  // namespace weft::comm
