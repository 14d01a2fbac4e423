// SPDX-License-Identifier: Apache-2.0
// Schedules: MSCCL's XML.
#include "schedule.h"

namespace weft::fuzz {

void tryInput(Input input) { trySchedule(input); }

}  // namespace weft::fuzz
