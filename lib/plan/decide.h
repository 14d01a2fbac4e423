// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/call.h"
#include "plan/tuning.h"
#include "schedule/ir.h"
#include "tune/expectation.h"

namespace weft::plan {

// A way to run the call, and what the model thinks of it.
struct Estimate {
  std::string name;  // as it may be forced
  double ns = 0;
  bool onlyShared = false;  // only where all buffers are of weftMemAlloc
};

// How a call runs.
struct Decision {
  schedule::Schedule schedule;  // unless `shared` runs
  // Where all ranks' buffers are shared, if the call gains by that. Sums have the same bits as
  // those of the other automatic algorithms on one host.
  std::optional<schedule::Schedule> shared;
  bool copies = false;              // it gains even where they are not, by CMA copies
  tune::Expected expected;          // of calls inside one host, on cores of their own
  tune::Expected expectedShared;    // of those that run, or ask for, `shared`
  std::string_view why;             // what decides: the call, a knob or the model
  std::vector<Estimate> estimates;  // of all that may be chosen, and of what is forced

  // Can `schedule` ever run?
  bool needsSchedule(const Tuning& tuning) const {
    return !shared || !(tuning.sharesAll || copies);
  }
};

// A pure function, so that all ranks decide alike: what the call or a knob asks for, else what the
// model finds cheapest. InvalidUsage if what is asked for cannot be had (forced.h).
Status decide(const Call& call, const Tuning& tuning, Decision* out);

}  // namespace weft::plan
