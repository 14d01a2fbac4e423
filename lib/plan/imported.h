// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "schedule/ir.h"
#include "schedule/registry.h"

namespace weft::plan {

struct Call;
struct Tuning;

// A schedule that stands in no registry, since it is somebody else's: proved by whoever read it
// (formats/read.h), for one number of ranks, and never chosen but by its name.
struct Imported {
  std::string name;  // as it is forced: its file's
  schedule::Schedule schedule;
  schedule::Algorithm algorithm;  // of that name, without a generator
};

std::shared_ptr<const Imported> importSchedule(std::string name, schedule::Schedule schedule);

// Of the registry, or what was imported. nullptr if there is none of that name.
const schedule::Algorithm* findAlgorithm(const Tuning& tuning, schedule::Collective collective,
                                         std::string_view name);

bool isImported(const schedule::Algorithm& algorithm, const Tuning& tuning);

// Can what was imported run this call? InvalidUsage says why not.
Status checkImportedFits(const Call& call, const Tuning& tuning);

}  // namespace weft::plan
