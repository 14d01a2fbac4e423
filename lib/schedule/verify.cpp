// SPDX-License-Identifier: Apache-2.0
#include "schedule/verify.h"

#include "schedule/hazards.h"
#include "schedule/link.h"
#include "schedule/result.h"

namespace weft {

Status verify(const Schedule& schedule, const VerifyOptions& options, VerifyCount* count) {
  LinkedSchedule linked;
  WEFT_TRY(link(schedule, linked));
  uint64_t ops = 0;
  for (const Program& p : linked.programs) ops += p.ops.size();
  WEFT_TRY(verifyResult(linked, options));
  if (options.hazards) WEFT_TRY(verifyHazards(linked, options));
  if (count != nullptr) count->ops += ops * (1 + (options.hazards ? options.invocations : 0));
  return {};
}

}  // namespace weft
