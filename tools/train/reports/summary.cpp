// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/summary.h"

#include <fmt/format.h>

namespace weft::train {

std::string loadingInWords(const LoadSummary& loading) {
  return fmt::format(
      "{:.3f} ms a step, {:.1f} % of it beside the steps, which waited {:.3f} ms; {:.0f} ms for "
      "the "
      "first one",
      loading.ms, 100 * loading.hidden(), loading.waitMs, loading.firstMs);
}

}  // namespace weft::train
