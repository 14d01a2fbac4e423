// SPDX-License-Identifier: Apache-2.0
// Schedules: MSCCL++'s JSON.
#include "schedule.h"

namespace weft::fuzz {

void tryInput(Input input) { trySchedule(input); }

}  // namespace weft::fuzz
