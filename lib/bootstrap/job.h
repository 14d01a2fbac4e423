// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "bootstrap/unique_id.h"

namespace weft::bootstrap {

// The job that this process belongs to by its environment, as the innermost launcher names it; the
// restart count of an elastic launcher counts as part of the name.
JobMark currentJob();

// InvalidArgument if the id was made in another job than ours. Only compared where both sides were
// started by the same kind of launcher: an id may well be handed from a batch script to its mpirun.
Status checkSameJob(const IdContent& id);

// The launcher's name of this job for a kind; empty if this process was not started by it.
std::string jobName(JobKind kind);

}  // namespace weft::bootstrap
