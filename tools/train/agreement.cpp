// SPDX-License-Identifier: Apache-2.0
#include "tools/train/agreement.h"

#include <fmt/format.h>

#include <vector>

namespace weft::train {

void agree(Communicator& team, const std::string& what, uint64_t value, Exit code) {
  std::vector<uint64_t> values(static_cast<size_t>(team.size()));
  team.allGather(&value, values.data(), 1);
  for (size_t rank = 1; rank < values.size(); ++rank) {
    if (values[rank] == values[0]) continue;
    throw SharedFailure(
        code,
        fmt::format("rank {} has another {} than rank 0 (fingerprints {:016x} and {:016x}), and "
                    "all ranks need the same",
                    rank, what, values[rank], values[0]));
  }
}

}  // namespace weft::train
