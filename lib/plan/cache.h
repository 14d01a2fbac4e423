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
// same call comes again. Bounded: when the plans outgrow kMaxBytes, all are dropped and made anew
// on demand. One thread at a time.
class PlanCache {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  PlanCache(Tuning tuning, BindTarget target) : tuning_(std::move(tuning)), target_(target) {}

  // The plan stays valid until the next find(). The call's spans and name are copied.
  Status find(const Call& call, const Plan** plan) {
    const std::unique_ptr<Entry>& slot = slots_[slotOf(call)];
    if (!slot || !same(slot->call, call)) return make(call, plan);
    *plan = slot->plan.get();
    return {};
  }
  std::size_t bytes() const { return bytes_; }
  const Tuning& tuning() const { return tuning_; }

 private:
  struct Entry {
    Call call;  // its spans and algorithm point into the members below
    std::vector<std::size_t> counts, displs;
    std::string algorithm;
    std::unique_ptr<const Plan> plan;
  };
  static constexpr std::size_t kSlots = 64;

  static std::size_t slotOf(const Call& call);
  static bool same(const Call& a, const Call& b);
  Status make(const Call& call, const Plan** plan);
  void keep(const Call& call, std::unique_ptr<const Plan> plan);

  Tuning tuning_;
  BindTarget target_;
  std::array<std::unique_ptr<Entry>, kSlots> slots_;  // direct-mapped
  std::size_t bytes_ = 0;
};

}  // namespace weft::plan
