// SPDX-License-Identifier: Apache-2.0
#include "plan/cache.h"

#include <algorithm>
#include <utility>

namespace weft::plan {

Status bindDecision(const Decision& decision, const Call& call, const Tuning& tuning,
                    const BindTarget& target, std::unique_ptr<Plan>* out) {
  std::unique_ptr<Plan> plain;
  if (decision.needsSchedule(tuning)) {
    WEFT_TRY(bindSchedule(decision.schedule, call, target, &plain));
    plain->expected = decision.expected;
  }
  if (!decision.shared) {
    *out = std::move(plain);
    return {};
  }
  WEFT_TRY(bindSchedule(*decision.shared, call, target, out));
  (*out)->expected = decision.expectedShared;
  (*out)->cmaCopies = decision.copies;
  (*out)->otherwise = std::move(plain);
  return {};
}

std::size_t PlanCache::mostBytes(std::uint32_t ranks) {
  constexpr std::size_t kLeast = std::size_t{1} << 20, kMost = std::size_t{32} << 20;
  constexpr std::size_t kCalls = 64, kOps = 4;  // of a peer: put, wait, and what is done with it
  return std::min(kLeast + ranks * kCalls * kOps * sizeof(BoundOp), kMost);
}

std::size_t PlanCache::Entry::bytes() const {
  return sizeof(*this) + plan->bytes() + algorithm.capacity() +
         (counts.capacity() + displs.capacity()) * sizeof(std::size_t);
}

std::unique_ptr<PlanCache::Entry> PlanCache::entryOf(const Call& call,
                                                     std::unique_ptr<const Plan> plan) {
  auto entry = std::make_unique<Entry>();
  entry->call = call;
  entry->counts.assign(call.counts.begin(), call.counts.end());
  entry->displs.assign(call.displs.begin(), call.displs.end());
  entry->algorithm = call.algorithm;
  entry->call.counts = entry->counts;
  entry->call.displs = entry->displs;
  entry->call.algorithm = entry->algorithm;
  entry->plan = std::move(plan);
  return entry;
}

Status PlanCache::bringToFront(const Call& call, Bucket& bucket) {
  const auto known = std::ranges::find_if(
      bucket, [&](const std::unique_ptr<Entry>& entry) { return same(entry->call, call); });
  if (known != bucket.end()) {
    std::rotate(bucket.begin(), known, known + 1);
    return {};
  }
  Decision decision;
  WEFT_TRY(decide(call, tuning_, &decision));
  std::unique_ptr<Plan> plan;
  WEFT_TRY(bindDecision(decision, call, tuning_, target_, &plan));
  std::unique_ptr<Entry> entry = entryOf(call, std::move(plan));
  if (entry->plan->otherwise) entry->asking = &askings_[mixed(call) % kAskings];
  makeRoom(entry->bytes());
  bytes_ += entry->bytes();
  ++made_;
  bucket.insert(bucket.begin(), std::move(entry));
  return {};
}

// One plan may be larger than all there is room for.
void PlanCache::makeRoom(std::size_t bytes) {
  while (bytes_ != 0 && bytes_ + bytes > mostBytes(target_.ranks)) {
    Bucket* bucket = nullptr;
    Bucket::iterator oldest;
    for (Bucket& other : buckets_)
      for (auto entry = other.begin(); entry != other.end(); ++entry)
        if (bucket == nullptr || (*entry)->used < (*oldest)->used) {
          bucket = &other;
          oldest = entry;
        }
    bytes_ -= (*oldest)->bytes();
    bucket->erase(oldest);
  }
}

}  // namespace weft::plan
