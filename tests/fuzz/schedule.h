// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/read.h"
#include "fuzz.h"
#include "schedule/transforms.h"
#include "verify/verify.h"

namespace weft::fuzz {

// Small schedules alone, so that an input takes moments. What is taken, the verifier takes as well.
inline void trySchedule(Input input) {
  const formats::Limits limits{.ranks = 32, .chunks = 1024, .values = 4096};
  schedule::Schedule schedule;
  if (!isGood(formats::parseSchedule(textOf(input), "file", limits, &schedule))) return;
  const verify::VerifyOptions options{.agreement = true, .outAfterEntry = true, .inPlace = true};
  require(verify::verify(schedule::stageOut(schedule), options).ok(),
          "the verifier takes what has been read");
}

}  // namespace weft::fuzz
