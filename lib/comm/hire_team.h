// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include "base/status.h"
#include "comm/core.h"

namespace weft::comm {

// Gives `config` the threads of a rank that it asks for, unless it has them from a parent: helpers on
// `cores`, of which a process is warned once if they are too few, the application's pool, or its team.
Status hireTeam(const cpu_set_t& cores, CommConfig* config);

}  // namespace weft::comm
