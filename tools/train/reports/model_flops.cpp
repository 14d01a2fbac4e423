// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/model_flops.h"

#include "tools/train/parameters.h"

namespace weft::train {

double flopsPerToken(const ModelShape& shape, int64_t length) {
  return 6 * static_cast<double>(parametersOf(shape).size()) +
         12 * static_cast<double>(shape.layers * shape.hidden * length);
}

}  // namespace weft::train
