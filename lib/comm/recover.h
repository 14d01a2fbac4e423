// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/deadline.h"
#include "base/status.h"
#include "comm/core.h"

namespace weft::comm {

// Makes the core of a communicator anew after a lost link, with another transport for each pair of
// ranks that has lost one. Collective, in the next call of each rank, over the control link of the
// old core.
//
// The call in flight has failed, but maybe not on all ranks: some had finished it, and may have
// failed in the one after it. The calls keep their places: all up to the last that any rank has
// entered have failed (Core::failedUpTo), and the one after it runs. An error, the same on all
// ranks, says why there is no recovery.
Status recover(const Core& broken, Deadline deadline, std::unique_ptr<Core>* out);

}  // namespace weft::comm
