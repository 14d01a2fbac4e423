// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/planned.h"

#include <map>
#include <utility>

#include "plan/plan_hash.h"

namespace weft::simulator {
namespace {

// Each bind asks for the programs of the typical ranks: they are made once.
void remember(schedule::Schedule* schedule) {
  std::map<std::uint32_t, schedule::Program> known;
  for (const std::uint32_t rank : schedule->typical)
    known.try_emplace(rank, schedule->program(rank));
  schedule->program = [known = std::move(known), make = schedule->program](std::uint32_t rank) {
    const auto found = known.find(rank);
    return found != known.end() ? found->second : make(rank);
  };
}

}  // namespace

Status Planned::decide(std::string* tooLarge) {
  WEFT_TRY(job_.decide(call_, &decision_));
  remember(&decision_.schedule);
  if (decision_.shared) remember(&*decision_.shared);
  if (job_.fits().ok()) return {};
  *tooLarge = job_.fits().text();
  return job_.keepOnly(decision_);
}

// With buffers that are not shared the other plan runs, unless this one copies.
Status Planned::bind(std::uint32_t member, std::uint64_t* hash,
                     std::unique_ptr<const plan::Plan>* out) const {
  std::unique_ptr<plan::Plan> plan;
  WEFT_TRY(job_.plan(call_, decision_, member, &plan));
  if (hash != nullptr) *hash = plan::hashOf(*plan);
  if (plan->otherwise && !ownBuffers_)
    *out = std::move(plan->otherwise);
  else
    *out = std::move(plan);
  return {};
}

}  // namespace weft::simulator
