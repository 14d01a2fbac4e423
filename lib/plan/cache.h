// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/status.h"
#include "plan/bind.h"
#include "plan/decide.h"
#include "plan/tuning.h"

namespace weft::plan {

// Compiles what was decided for one rank: for shared buffers with what to do if they are not.
Status bindDecision(const Decision& decision, const Call& call, const Tuning& tuning,
                    const BindTarget& target, std::unique_ptr<Plan>* out);

// The compiled plans of one communicator and rank. find() is the hot path: one comparison when the
// same call comes again. Bounded: those that were not used for longest make room. One thread at a
// time.
class PlanCache {
 public:
  // Room for the plans of 64 calls that exchange a block with each rank and wait for one of each.
  static std::size_t mostBytes(std::uint32_t ranks);

  PlanCache(Tuning tuning, BindTarget target) : tuning_(std::move(tuning)), target_(target) {}

  // The plan stays valid until the next find(). The call's spans and name are copied.
  Status find(const Call& call, const Plan** plan) {
    Bucket& bucket = buckets_[bucketOf(call)];
    if (bucket.empty() || !same(bucket.front()->call, call)) WEFT_TRY(bringToFront(call, bucket));
    bucket.front()->used = ++finds_;
    *plan = bucket.front()->plan.get();
    return {};
  }
  std::size_t bytes() const { return bytes_; }
  std::uint64_t made() const { return made_; }  // how many plans so far
  const Tuning& tuning() const { return tuning_; }

 private:
  struct Entry {
    Call call;  // its spans and algorithm point into the members below
    std::vector<std::size_t> counts, displs;
    std::string algorithm;
    std::unique_ptr<const Plan> plan;
    std::uint64_t used = 0;  // by which find() last

    std::size_t bytes() const;
  };
  using Bucket = std::vector<std::unique_ptr<Entry>>;  // the last found stands first
  static constexpr std::size_t kBuckets = 64;

  static std::size_t bucketOf(const Call& call);
  static bool same(const Call& a, const Call& b);
  static std::unique_ptr<Entry> entryOf(const Call& call, std::unique_ptr<const Plan> plan);
  Status bringToFront(const Call& call, Bucket& bucket);
  void makeRoom(std::size_t bytes);

  Tuning tuning_;
  BindTarget target_;
  std::array<Bucket, kBuckets> buckets_;
  std::size_t bytes_ = 0;
  std::uint64_t finds_ = 0, made_ = 0;
};

}  // namespace weft::plan
