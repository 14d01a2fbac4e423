// SPDX-License-Identifier: Apache-2.0
// What knobs say of how calls are run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/knobs.h"
#include "base/status.h"
#include "plan/tuning.h"

namespace weft::comm {

// A knob that is "auto" or not set takes `fallback`.
Status numberKnob(Knob knob, std::int64_t fallback, std::int64_t* value);

// The file that WEFT_ALGO names, maybe with a protocol after it; empty: it names none.
std::string scheduleFile();

// `hosts`: by rank, the number of its host. Reads and proves the schedule of scheduleFile().
Status readTuning(const std::vector<std::uint32_t>& hosts, plan::Tuning* tuning);

}  // namespace weft::comm
