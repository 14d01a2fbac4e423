// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "forms.h"
#include "plan/bind.h"

// Calls of one form, one after another: empty, short enough for an arrival slot, just too long for
// it, and in more segments than may be in flight; so that arrival slots and protocol memory are
// reused. Rings are short, to be reused by few calls.
namespace weft::test {
using namespace verify;

enum class Placement { Apart, InPlace, OddRanksInPlace };

struct Uneven {
  std::vector<std::size_t> counts, displs;
};

struct BoundJob {
  Job job;
  std::vector<std::unique_ptr<plan::Plan>> plans;  // call by call
  std::vector<std::unique_ptr<Uneven>> blocks;
};

// As few arrival slots as there may be, but enough for an opening; a protocol slot has one line or,
// where it is roomy, eight.
inline plan::BindTarget targetFor(const schedule::Schedule& s, bool roomy) {
  const std::uint64_t lines = roomy ? 8 : 1;
  plan::BindTarget target;
  target.ranks = s.ranks;
  target.arrivalSlots =
      s.ranks * std::max(plan::StagingMap(s, 0, s.program(0)).arrivalsPerRegion(), 8u);
  target.dense = 2;
  target.ring = 4;
  const transport::Stages shorter{2, std::max<std::size_t>(lines / 2, 1) * transport::kLine};
  const transport::Stages longer{transport::kMaxLanes, lines * transport::kLine};
  target.ringStages = {shorter, roomy ? longer : transport::Stages{}};
  target.pairArrivalSlots = s.ranks * (target.ring + 1);
  target.budget.stagingBytes = std::max(s.tmpChunks, 1u) * lines * transport::kLine;
  target.budget.arenaBytes = s.ranks * target.budget.stagingBytes;
  target.streamMin = 512;
  return target;
}

class JobMaker {
 public:
  JobMaker(const Form& form, const plan::Call& call, Placement placement, bool roomy = false)
      : form_(form), call_(call), placement_(placement) {
    made_.job.target = targetFor(form.schedule, roomy);
  }

  // Elements of the vector, or of a block.
  Status add(std::uint64_t count) {
    plan::Call call = call_;
    call.count = count;
    return bind(call, form_);
  }
  // Blocks of 0, 1, 2 and 3 times `unit` elements, packed or, by displs, in another order and
  // apart.
  Status addUneven(std::size_t unit, bool apart) {
    auto blocks = std::make_unique<Uneven>();
    const std::uint32_t n = form_.schedule.ranks;
    for (std::uint32_t r = 0; r < n; ++r) blocks->counts.push_back(r * 5 % 4 * unit);
    for (std::uint32_t r = 0; r < n && apart; ++r)
      blocks->displs.push_back((n - r) * (3 * unit + 5));
    plan::Call call = call_;
    call.counts = blocks->counts;
    call.displs = blocks->displs;
    for (const std::size_t c : blocks->counts) call.count += c;
    made_.blocks.push_back(std::move(blocks));
    return bind(call, form_);
  }
  // The last call, refused by these ranks.
  void refuse(const std::vector<bool>& unwilling) { made_.job.calls.back().unwilling = unwilling; }
  void becomes(const Form& form) { form_ = form; }

  BoundJob take() { return std::move(made_); }

 private:
  Status bind(const plan::Call& call, const Form& form) {
    PlannedCall planned{.call = call, .plans = {}, .order = form.order};
    for (std::uint32_t r = 0; r < form.schedule.ranks; ++r) {
      plan::BindTarget target = made_.job.target;
      target.rank = r;
      std::unique_ptr<plan::Plan> plan;
      WEFT_TRY(plan::bindSchedule(form.schedule, call, target, &plan));
      plan->cmaCopies = form.cmaCopies;
      planned.plans.push_back(plan.get());
      made_.plans.push_back(std::move(plan));
      planned.inPlace.push_back(placement_ == Placement::InPlace ||
                                (placement_ == Placement::OddRanksInPlace && r % 2 == 1));
    }
    planned.withoutUnusedBuffer = call.op == reduce::RedOp::Epilogue &&
                                  placement_ == Placement::Apart && made_.job.calls.size() % 2 == 0;
    made_.job.calls.push_back(std::move(planned));
    return {};
  }

  Form form_;
  const plan::Call call_;
  const Placement placement_;
  BoundJob made_;
};

inline bool hasUnevenForm(const plan::Call& call) {
  return call.collective == schedule::Collective::AllGather ||
         call.collective == schedule::Collective::ReduceScatter;
}

inline bool cutsVector(const plan::Call& call) {
  const schedule::Collective c = call.collective;
  return c == schedule::Collective::Broadcast || c == schedule::Collective::Reduce ||
         (c == schedule::Collective::AllReduce && call.op != reduce::RedOp::Epilogue);
}

// 12 floats fill an arrival slot.
inline Status makeJob(const Form& form, const plan::Call& call, Placement placement,
                      BoundJob* out) {
  const std::uint64_t chunks = cutsVector(call) ? form.schedule.logicalChunks : 1;
  JobMaker maker(form, call, placement);
  if (call.collective == schedule::Collective::Barrier) {
    for (int i = 0; i < 6; ++i) WEFT_TRY(maker.add(0));
  } else {
    for (const std::uint64_t count : {std::uint64_t{3}, 12 * chunks, 13 * chunks - 1,
                                      85 * chunks + 7, std::uint64_t{0}, 12 * chunks + 1})
      WEFT_TRY(maker.add(count));
    if (hasUnevenForm(call)) {
      WEFT_TRY(maker.addUneven(4, true));
      WEFT_TRY(maker.addUneven(25, false));
    }
  }
  *out = maker.take();
  return {};
}

}  // namespace weft::test
