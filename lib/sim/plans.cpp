// SPDX-License-Identifier: Apache-2.0
#include "sim/plans.h"

namespace weft::sim {

Status Plans::keep(const Job& call, std::uint32_t rank, Pointer* plan) {
  constexpr std::size_t kMostOps = std::size_t{10} << 20;
  WEFT_TRY(find(call, rank, plan));
  if (ops_ > kMostOps) {
    kept_.clear();
    ops_ = 0;
  }
  if (kept_.try_emplace({&call, rank}, *plan).second) ops_ += (*plan)->ops.size();
  return {};
}

Status Plans::find(const Job& call, std::uint32_t rank, Pointer* plan) const {
  if (const auto kept = kept_.find({&call, rank}); kept != kept_.end()) {
    *plan = kept->second;
    return {};
  }
  std::unique_ptr<const plan::Plan> bound;
  WEFT_TRY(call.plan(rank, &bound));
  *plan = std::move(bound);
  return {};
}

}  // namespace weft::sim
