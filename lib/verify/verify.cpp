// SPDX-License-Identifier: Apache-2.0
#include "verify/verify.h"

#include "verify/hazards.h"
#include "verify/in_place.h"
#include "verify/link.h"
#include "verify/result.h"

namespace weft::verify {

Status verify(const schedule::Schedule& schedule, const VerifyOptions& options,
              VerifyCount* count) {
  LinkedSchedule linked;
  WEFT_TRY(link(schedule, linked));
  uint64_t ops = 0;
  for (const schedule::Program& p : linked.programs) ops += p.ops.size();
  WEFT_TRY(verifyResult(linked, options));
  if (options.inPlace) WEFT_TRY(verifyInPlace(linked));
  if (options.hazards) WEFT_TRY(verifyHazards(linked, options));
  if (count != nullptr) count->ops += options.hazards ? 2 * ops : ops;
  return {};
}

}  // namespace weft::verify
