// SPDX-License-Identifier: Apache-2.0
#include "plan/imported.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "plan/call.h"
#include "plan/tuning.h"

namespace weft::plan {

std::shared_ptr<const Imported> importSchedule(std::string name, schedule::Schedule schedule) {
  auto imported = std::make_shared<Imported>();
  imported->name = std::move(name);
  imported->schedule = std::move(schedule);
  const schedule::Collective collective = imported->schedule.collective;
  imported->algorithm = {.name = imported->name,
                         .collective = collective,
                         .make = nullptr,
                         .order = schedule::isReduction(collective) ? schedule::SumOrder::Algorithm
                                                                    : schedule::SumOrder::None};
  return imported;
}

const schedule::Algorithm* findAlgorithm(const Tuning& tuning, schedule::Collective collective,
                                         std::string_view name) {
  if (!tuning.imported || tuning.imported->name != name)
    return schedule::findAlgorithm(collective, name);
  const schedule::Algorithm& algorithm = tuning.imported->algorithm;
  return algorithm.collective == collective ? &algorithm : nullptr;
}

bool isImported(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  return tuning.imported && &algorithm == &tuning.imported->algorithm;
}

Status checkImportedFits(const Call& call, const Tuning& tuning) {
  const schedule::Schedule& schedule = tuning.imported->schedule;
  const auto refuse = [&](const std::string& why) {
    return Status::error(Code::InvalidUsage, "schedule '", tuning.imported->name, "' ", why);
  };
  if (schedule.ranks != tuning.ranks)
    return refuse(text("is for ", schedule.ranks, " ranks, and this communicator has ",
                       tuning.ranks, "; fix: force another algorithm"));
  if (call.op == reduce::RedOp::Epilogue)
    return refuse("has no place for an epilogue; fix: force another algorithm");
  if (schedule.parts > 1 && !call.counts.empty())
    return refuse(
        "cuts blocks into parts, which must be of one length; fix: force another "
        "algorithm for blocks of several");
  return {};
}

}  // namespace weft::plan
