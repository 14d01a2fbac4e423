// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"

// Small changes of a bound plan, each a slip that the binder could make, to see whether the proof
// notices.
namespace weft::test {

enum class Mutation {
  DropOp,
  RepeatOp,
  SwapOps,
  Drain,
  Finish,
  Stream,
  Kind,
  Peer,
  Arrival,
  ClearToSend,
  Source,
  SourceBase,
  Target,
  Length,
  Limit,
  DropOperand,
  SwapOperands,
  Operand,
  OperandBase,
  DropSpread,
  Spread,
  Segment,
  Divisor,
  Opening,
  Shared,
  Writers,
  Readers,
  Ring,
  RunsAhead,
  kCount,
};

struct Mutant {
  Mutation mutation;
  std::size_t op = 0;
  std::uint32_t operand = 0;
  plan::BoundOp before;  // the op concerned
};

// Changes `plan` in place, calls `visit` and undoes the change.
class Mutator {
 public:
  Mutator(plan::Plan* plan, std::uint32_t ranks, std::function<void(const Mutant&)> visit)
      : plan_(*plan),
        ranks_(ranks),
        ops_(plan->ops),
        operands_(plan->operands),
        visit_(std::move(visit)) {}

  void run() {
    for (op_ = 0; op_ < ops_.size(); ++op_) mutateOp();
    op_ = 0;
    mutatePlan();
  }

 private:
  using Change = std::function<void(plan::BoundOp&)>;
  using Kind = plan::BoundOp::Kind;

  void emit(Mutation mutation, std::uint32_t operand = 0) {
    visit_({mutation, op_, operand, ops_.empty() ? plan::BoundOp{} : ops_[op_]});
    plan_.ops = ops_;
    plan_.operands = operands_;
  }

  void change(Mutation mutation, const Change& how) {
    how(plan_.ops[op_]);
    emit(mutation);
  }

  template <class Number>
  void neighbours(Mutation mutation, Number plan::BoundOp::*field, Number by) {
    change(mutation, [&](plan::BoundOp& op) { op.*field += by; });
    change(mutation, [&](plan::BoundOp& op) { op.*field -= by; });
  }

  void mutateOp() {
    const plan::BoundOp& op = ops_[op_];
    structure();
    kinds();
    const bool computes = op.kind > Kind::Wait || op.kind == Kind::Store;
    const bool reads = op.kind != Kind::Wait && op.kind != Kind::Raise && op.kind != Kind::Signal &&
                       op.kind != Kind::Fold;
    const bool writes = computes || op.kind == Kind::Put || op.kind == Kind::PutDirect;
    if (!computes) {
      change(Mutation::Peer, [&](plan::BoundOp& o) { o.peer = (o.peer + 1) % ranks_; });
      neighbours(Mutation::Arrival, &plan::BoundOp::arrival, 1u);
    }
    if (op.kind == Kind::PutDirect)
      neighbours(Mutation::ClearToSend, &plan::BoundOp::clearToSend, 1u);
    if (reads) place(Mutation::Source, &plan::BoundOp::src);
    if (reads && op.src.base <= plan::Base::Out)
      change(Mutation::SourceBase, [](plan::BoundOp& o) { o.src.base = other(o.src.base); });
    if (writes) place(Mutation::Target, &plan::BoundOp::dst);
    if (op.kind == Kind::Put)
      change(Mutation::Target, [](plan::BoundOp& o) {
        o.dst.base = o.dst.base == plan::Base::Ring ? plan::Base::Arena : plan::Base::Ring;
      });
    if (reads || writes) {
      neighbours(Mutation::Length, &plan::BoundOp::max, std::uint64_t{4});
      neighbours(Mutation::Limit, &plan::BoundOp::limit, std::uint64_t{4});
    }
    if (op.drain) change(Mutation::Drain, [](plan::BoundOp& o) { o.drain = false; });
    if (op.kind == Kind::Fold)
      change(Mutation::Finish, [](plan::BoundOp& o) { o.finish = !o.finish; });
    if (op.stream) change(Mutation::Stream, [](plan::BoundOp& o) { o.stream = false; });
    if (op.kind == Kind::Fold) operands();
    spreads();
  }

  static plan::Base other(plan::Base b) {
    using plan::Base;
    constexpr Base kOthers[] = {Base::Out,   Base::In,      Base::Arrivals, Base::Ring,
                                Base::Arena, Base::PeerOut, Base::PeerIn,   Base::Arena};
    return kOthers[static_cast<std::size_t>(b)];
  }

  void place(Mutation mutation, plan::Place plan::BoundOp::*field) {
    change(mutation, [&](plan::BoundOp& o) { (o.*field).offset += 4; });
    change(mutation, [&](plan::BoundOp& o) { (o.*field).offset -= 4; });
  }

  void structure() {
    const auto at = static_cast<std::ptrdiff_t>(op_);
    plan_.ops.erase(plan_.ops.begin() + at);
    emit(Mutation::DropOp);
    plan_.ops.insert(plan_.ops.begin() + at, ops_[op_]);
    emit(Mutation::RepeatOp);
    if (op_ + 1 == ops_.size()) return;
    std::swap(plan_.ops[op_], plan_.ops[op_ + 1]);
    emit(Mutation::SwapOps);
  }

  // Another rewrite than the right one: the inline threshold missed, a sum not fused, ...
  void kinds() {
    const auto becomes = [&](Kind kind) {
      change(Mutation::Kind, [&](plan::BoundOp& o) { o.kind = kind; });
    };
    switch (ops_[op_].kind) {
      case Kind::Put:
        becomes(Kind::PutInline);
        return becomes(Kind::PutDirect);
      case Kind::PutInline:
      case Kind::PutDirect:
        return becomes(Kind::Put);
      case Kind::Raise:
        return becomes(Kind::PutInline);
      case Kind::Signal:
        return becomes(Kind::Raise);
      case Kind::Copy:
        becomes(Kind::Scale);
        becomes(Kind::Publish);
        return becomes(Kind::Finish);
      case Kind::Publish:
      case Kind::Scale:
      case Kind::Finish:
        return becomes(Kind::Copy);
      default:
        return;
    }
  }

  void operands() {
    const plan::BoundOp& op = ops_[op_];
    for (std::uint32_t k = 0; k < op.operands; ++k) {
      const std::size_t at = op.first + k;
      plan_.operands.erase(plan_.operands.begin() + static_cast<std::ptrdiff_t>(at));
      plan_.operands.push_back({});
      for (plan::BoundOp& o : plan_.ops) {
        if (o.first > at) --o.first;
        if (o.firstSpread > at) --o.firstSpread;
      }
      --plan_.ops[op_].operands;
      emit(Mutation::DropOperand, k);
      for (const std::uint64_t by : {std::uint64_t{4}, ~std::uint64_t{3}}) {
        plan_.operands[at].offset += by;
        emit(Mutation::Operand, k);
      }
      plan_.operands[at].base = other(plan_.operands[at].base);
      emit(Mutation::OperandBase, k);
      plan_.operands[at].peer = (plan_.operands[at].peer + 1) % ranks_;
      if (operands_[at].base >= plan::Base::PeerIn) emit(Mutation::OperandBase, k);
      if (k + 1 == op.operands) continue;
      std::swap(plan_.operands[at], plan_.operands[at + 1]);
      emit(Mutation::SwapOperands, k);
    }
  }

  void spreads() {
    const plan::BoundOp& op = ops_[op_];
    for (std::uint32_t k = 0; k < op.spread; ++k) {
      std::swap(plan_.operands[op.firstSpread + k], plan_.operands[op.firstSpread + op.spread - 1]);
      --plan_.ops[op_].spread;
      emit(Mutation::DropSpread, k);
      plan_.operands[op.firstSpread + k].offset += 4;
      emit(Mutation::Spread, k);
      plan::Place& target = plan_.operands[op.firstSpread + k];
      target.peer = (target.peer + 1) % ranks_;
      emit(Mutation::Spread, k);
    }
  }

  template <class Number>
  void changePlan(Mutation mutation, Number* field, Number to) {
    const Number before = std::exchange(*field, to);
    if (before != to) emit(mutation);
    *field = before;
  }

  static bool usesStage(const plan::BoundOp& op) {
    return op.src.base == plan::Base::Ring || op.dst.base == plan::Base::Ring ||
           op.kind == plan::BoundOp::Kind::Publish;
  }

  void mutatePlan() {
    if (plan_.segments > 1)
      changePlan(Mutation::Segment, &plan_.segmentBytes, plan_.segmentBytes + 64);
    changePlan(Mutation::Divisor, &plan_.divisor, std::uint64_t{plan_.divisor == 1 ? ranks_ : 1});
    if (plan_.opening != 0) {
      changePlan(Mutation::Opening, &plan_.opening, 0u);
      changePlan(Mutation::Opening, &plan_.opening, plan_.opening - 1);
      changePlan(Mutation::Opening, &plan_.opening, plan_.opening + 1);
      changePlan(Mutation::Opening, &plan_.tells, plan_.tells - 1);
      changePlan(Mutation::Opening, &plan_.tells, plan_.tells + 1);
    }
    // Of In a plan may share more than is read.
    if (plan_.sharedIn > 4) changePlan(Mutation::Shared, &plan_.sharedIn, std::uint64_t{4});
    if (plan_.sharedOut != 0) changePlan(Mutation::Shared, &plan_.sharedOut, plan_.sharedOut - 4);
    changePlan(Mutation::Ring, &plan_.inRing, !plan_.inRing);
    if (plan_.stageBytes != 0 && std::ranges::any_of(plan_.ops, usesStage)) {
      changePlan(Mutation::Ring, &plan_.stageBytes, plan_.stageBytes * 2);
      changePlan(Mutation::Ring, &plan_.stageBytes, plan_.stageBytes / 2);
    }
    changePlan(Mutation::RunsAhead, &plan_.runsAhead, !plan_.runsAhead);
    dropLast(Mutation::Writers, &plan_.writers);
    dropLast(Mutation::Readers, &plan_.readers);
  }

  void dropLast(Mutation mutation, std::vector<std::uint32_t>* ranks) {
    if (ranks->empty()) return;
    const std::uint32_t last = ranks->back();
    ranks->pop_back();
    emit(mutation);
    ranks->push_back(last);
  }

  plan::Plan& plan_;
  const std::uint32_t ranks_;
  const std::vector<plan::BoundOp> ops_;
  const std::vector<plan::Place> operands_;
  std::function<void(const Mutant&)> visit_;
  std::size_t op_ = 0;
};

}  // namespace weft::test
