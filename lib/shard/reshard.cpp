// SPDX-License-Identifier: Apache-2.0
#include "shard/reshard.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/invalid.h"
#include "base/text.h"
#include "base/threads.h"
#include "comm/agree.h"
#include "reduce/rounding.h"

namespace weft::shard {
namespace {

// What ranks that have joined must know of the old shard.
struct Cut {
  std::uint64_t bucketElements = 0;
  std::uint32_t ranks = 0;
  std::int64_t steps = 0;
};

Status compare(ShardedOptimizer& from, ShardedOptimizer& to) {
  if (from.state().arrayNames() != to.state().arrayNames())
    return invalid("the new shard has another optimizer than the old one");
  const auto& a = from.layout().parameters();
  const auto& b = to.layout().parameters();
  for (std::size_t p = 0; p < a.size() && p < b.size(); ++p)
    if (a[p].name != b[p].name || a[p].elements != b[p].elements || a[p].frozen != b[p].frozen ||
        a[p].tiedTo != b[p].tiedTo)
      return invalid("parameter ", p, " of the new shard is another: '", b[p].name, "' of ",
                     b[p].elements, " elements, not '", a[p].name, "' of ", a[p].elements);
  if (a.size() == b.size()) return {};
  return invalid("the new shard has ", b.size(), " parameters, the old one ", a.size());
}

class Reshard {
 public:
  Reshard(ShardedOptimizer* from, ShardedOptimizer* to) : from_(from), to_(to) {}

  Status run() {
    WEFT_TRY(agree());
    if (to_ == nullptr) return moveAll();
    const Status moved = moveHere();
    if (!moved.ok()) to_->fail(moved);  // it may have half of the state
    return moved;
  }

 private:
  // A rank with both tells each side of the other's errors.
  Status agree() {
    Status status = withoutExceptions([&] { return check(); });
    if (to_ != nullptr) status = among(*to_, status);
    if (from_ != nullptr) status = among(*from_, status);
    if (to_ != nullptr) status = among(*to_, status);
    WEFT_TRY(status);
    if (from_ != nullptr) WEFT_TRY(findRoot(*from_, to_ != nullptr));
    return to_ != nullptr ? findRoot(*to_, from_ != nullptr) : Status();
  }

  Status check() {
    if (from_ != nullptr) WEFT_TRY(from_->atRest("resharding"));
    if (to_ != nullptr) WEFT_TRY(to_->atRest("resharding"));
    return from_ != nullptr && to_ != nullptr ? compare(*from_, *to_) : Status();
  }

  static Status among(ShardedOptimizer& shard, const Status& mine) {
    return comm::agreeOn(shard.mesh().world(), mine, shard.timeoutMs(), "resharding");
  }

  // The first of this side's ranks that has both, and whether all have.
  Status findRoot(ShardedOptimizer& side, bool hasBoth) {
    std::vector<std::uint8_t> both;
    const std::uint8_t mine = hasBoth ? 1 : 0;
    WEFT_TRY(comm::gatherRecords(side.mesh().world(), mine, &both, side.timeoutMs(), "resharding"));
    const auto first = std::ranges::find(both, 1);
    if (first == both.end())
      return Status::error(Code::InvalidUsage,
                           "no rank has the old shard and the new one; fix: save a checkpoint and "
                           "load it");
    root_ = static_cast<std::uint32_t>(first - both.begin());
    somebodyJoins_ = std::ranges::count(both, 1) != static_cast<std::ptrdiff_t>(both.size());
    return {};
  }

  // From root to the ranks that have joined, if there are any.
  Status tell(void* data, std::size_t bytes) {
    if (to_ == nullptr || !somebodyJoins_) return {};
    return comm::shareFrom(to_->mesh().world(), root_, data, bytes, to_->timeoutMs(), "resharding");
  }

  Status shareCut() {
    if (from_ != nullptr)
      cut_ = {from_->state().config().bucketElements, from_->mesh().ranks(), from_->state().steps};
    WEFT_TRY(tell(&cut_, sizeof(cut_)));
    const auto& parameters = to_->layout().parameters();
    return Layout::make({parameters.begin(), parameters.end()}, cut_.bucketElements, cut_.ranks,
                        &layout_);
  }

  Status moveHere() {
    WEFT_TRY(shareCut());
    WEFT_TRY(moveAll());
    WEFT_TRY(moveFrozen());
    to_->state().steps = cut_.steps;
    return to_->publish();
  }

  Status moveAll() {
    const Layout& layout = from_ != nullptr ? from_->layout() : layout_;
    const std::size_t arrays = (from_ != nullptr ? from_ : to_)->state().arrayNames().size();
    for (std::uint32_t b = 0; b < layout.buckets().size(); ++b) {
      for (std::size_t a = 0; a < arrays; ++a) {
        values_.resize(layout.buckets()[b].elements);
        if (from_ != nullptr)
          WEFT_TRY(gatherArray(from_->mesh(), from_->state(), b, a, &values_, from_->timeoutMs()));
        WEFT_TRY(tell(values_.data(), values_.size() * sizeof(float)));
        if (to_ != nullptr) take(b, a);
      }
    }
    return {};
  }

  // This rank's runs of what has come together.
  void take(std::uint32_t bucket, std::size_t array) {
    ShardState& state = to_->state();
    const Layout::Bucket& from = layout_.buckets()[bucket];
    std::set<std::uint32_t> targets;
    for (const std::uint32_t p : from.parameters) targets.insert(state.layout().slot(p).bucket);
    for (const std::uint32_t b : targets) {
      state.visitOwn(b, [&](const StateRun& run) {
        const Layout::Slot& slot = layout_.slot(run.parameter);
        if (slot.bucket != bucket) return;
        const float* const values = values_.data() + (slot.offset - from.offset + run.from);
        const StateRun::Array own = run.array(array);
        reduce::castFloats(own.type, own.data, values, run.slice.n, {}, 0);
      });
    }
  }

  Status moveFrozen() {
    for (const std::uint32_t p : layout_.frozen()) {
      const std::uint64_t n = layout_.parameters()[p].elements;
      values_.resize(n);
      if (from_ != nullptr)
        reduce::widen(from_->state().config().paramType, values_.data(),
                      from_->state().parameter(p), n);
      WEFT_TRY(tell(values_.data(), n * sizeof(float)));
      reduce::castFloats(to_->state().config().paramType, to_->state().parameter(p), values_.data(),
                         n, {}, 0);
    }
    return {};
  }

  ShardedOptimizer* const from_;
  ShardedOptimizer* const to_;
  std::uint32_t root_ = 0;
  bool somebodyJoins_ = false;
  Cut cut_;
  Layout layout_;  // the old one
  std::vector<float> values_;
};

}  // namespace

Status reshard(ShardedOptimizer* from, ShardedOptimizer* to) {
  if (from == nullptr && to == nullptr)
    return Status::error(Code::InvalidArgument, "resharding needs a shard");
  return withoutExceptions([&] { return Reshard(from, to).run(); });
}

}  // namespace weft::shard
