// SPDX-License-Identifier: Apache-2.0
#include "plan/cache.h"

#include <algorithm>
#include <utility>

namespace weft::plan {

Status bindDecision(const Decision& decision, const Call& call, const Tuning& tuning,
                    const BindTarget& target, std::unique_ptr<Plan>* out) {
  std::unique_ptr<Plan> plain;
  if (decision.needsSchedule(tuning))
    WEFT_TRY(bindSchedule(decision.schedule, call, target, &plain));
  if (decision.shared) {
    WEFT_TRY(bindSchedule(*decision.shared, call, target, out));
    (*out)->cmaCopies = decision.copies;
    (*out)->otherwise = std::move(plain);
  } else {
    *out = std::move(plain);
  }
  (*out)->expected = decision.expected;
  return {};
}

std::size_t PlanCache::slotOf(const Call& call) {
  const std::uint64_t mixed = (call.count * 10 + static_cast<std::uint64_t>(call.type)) * 9 +
                              static_cast<std::uint64_t>(call.collective);
  return (mixed * 0x9e3779b97f4a7c15u) >> 58;
}

bool PlanCache::same(const Call& a, const Call& b) {
  return a.count == b.count && a.collective == b.collective && a.type == b.type && a.op == b.op &&
         a.root == b.root && a.reproducible == b.reproducible && a.algorithm == b.algorithm &&
         std::ranges::equal(a.counts, b.counts) && std::ranges::equal(a.displs, b.displs);
}

Status PlanCache::make(const Call& call, const Plan** plan) {
  Decision decision;
  WEFT_TRY(decide(call, tuning_, &decision));
  std::unique_ptr<Plan> made;
  WEFT_TRY(bindDecision(decision, call, tuning_, target_, &made));
  *plan = made.get();
  keep(call, std::move(made));
  return {};
}

void PlanCache::keep(const Call& call, std::unique_ptr<const Plan> plan) {
  std::unique_ptr<Entry>& slot = slots_[slotOf(call)];
  if (slot) bytes_ -= slot->plan->bytes();
  bytes_ += plan->bytes();
  auto entry = std::make_unique<Entry>();
  entry->call = call;
  entry->counts.assign(call.counts.begin(), call.counts.end());
  entry->displs.assign(call.displs.begin(), call.displs.end());
  entry->algorithm = call.algorithm;
  entry->call.counts = entry->counts;
  entry->call.displs = entry->displs;
  entry->call.algorithm = entry->algorithm;
  entry->plan = std::move(plan);
  slot = std::move(entry);
  if (bytes_ <= kMaxBytes) return;
  const std::size_t kept = slot->plan->bytes();
  for (std::unique_ptr<Entry>& other : slots_)
    if (&other != &slot) other.reset();
  bytes_ = kept;
}

}  // namespace weft::plan
