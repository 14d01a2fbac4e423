// SPDX-License-Identifier: Apache-2.0
#include "shard/gather_array.h"

#include <algorithm>

#include "reduce/rounding.h"

namespace weft {

Status gatherArray(ShardedOptimizer& shard, std::uint32_t bucket, std::size_t array,
                   std::vector<float>* all) {
  const ShardState& state = shard.state();
  const Mesh& mesh = shard.mesh();
  const Layout::Bucket& b = state.layout().buckets()[bucket];
  all->assign(b.elements, 0);
  const ShardState::Range own = state.part(bucket, Level::State);
  state.visitRuns(bucket, own.offset, own.elements, nullptr, nullptr, [&](const StateRun& run) {
    const std::uint64_t at = state.layout().slot(run.parameter).offset + run.from - b.offset;
    if (array == 0)
      widen(run.slice.weightType, all->data() + at, run.slice.weights, run.slice.n);
    else
      std::copy_n(run.state[array - 1], run.slice.n, all->data() + at);
  });
  Call call;
  call.collective = Collective::AllGather;
  call.type = DType::F32;
  for (const Level level : {Level::State, Level::Grad, Level::Param}) {
    if (mesh.size(level) == 1) continue;
    const ShardState::Range part = state.part(bucket, level);
    float* const mine = all->data() + (part.offset - b.offset);
    call.count = part.elements;
    WEFT_TRY(mesh.group(level)->run(call, mine, mine - mesh.position(level) * part.elements,
                                    nullptr, shard.timeoutMs(), "weights"));
  }
  return {};
}

}  // namespace weft
