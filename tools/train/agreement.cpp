// SPDX-License-Identifier: Apache-2.0
#include "tools/train/agreement.h"

#include <fmt/format.h>

#include "perf/common/report_file.h"

namespace weft::train {

void agree(Communicator& team, const std::string& what, uint64_t value, Exit code,
           const std::vector<size_t>& like) {
  std::vector<uint64_t> values(static_cast<size_t>(team.size()));
  team.allGather(&value, values.data(), 1);
  for (size_t rank = 1; rank < values.size(); ++rank) {
    const size_t same = like.empty() ? 0 : like[rank];
    if (values[rank] == values[same]) continue;
    throw SharedFailure(
        code,
        fmt::format("rank {} has another {} than rank {} (fingerprints {:016x} and {:016x}), and "
                    "all ranks need the same",
                    rank, what, same, values[rank], values[same]));
  }
}

void onRankZero(Communicator& team, const std::function<void()>& work) {
  int32_t code = 0;
  std::string why;
  try {
    if (team.rank() == 0) work();
  } catch (const Failure& failure) {
    code = failure.code();
    why = failure.what();
  } catch (const tools::CannotWrite& error) {
    code = static_cast<int32_t>(Exit::kCannotWrite);
    why = error.what();
  }
  team.broadcast(&code, &code, 1);
  if (code != 0) throw SharedFailure(static_cast<Exit>(code), why);
}

}  // namespace weft::train
