// SPDX-License-Identifier: Apache-2.0
#include "tools/train/agreement.h"

#include <fmt/format.h>

#include <vector>

namespace weft::train {

void agree(Communicator& team, const std::string& what, uint64_t value) {
  std::vector<uint64_t> values(static_cast<size_t>(team.size()));
  team.allGather(&value, values.data(), 1);
  for (size_t rank = 1; rank < values.size(); ++rank) {
    if (values[rank] == values[0]) continue;
    throw SharedFailure(
        Exit::kData,
        fmt::format("rank {} has another {} than rank 0 (fingerprints {:016x}, {:016x}): "
                    "start all ranks alike",
                    rank, what, values[rank], values[0]));
  }
}

}  // namespace weft::train
