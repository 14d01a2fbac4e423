// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/text.h"
#include "schedule/ir.h"

// Single-op changes of a schedule, to see whether the verifier notices.
namespace weft::test {
using namespace schedule;

enum class Mutation {
  Drop,
  Duplicate,
  SwapOps,
  Peer,
  Source,
  Target,
  Chunks,
  Shape,
  Apply,
  DropOperand,
  SwapOperands,
  Operand,
  Owner,
};

struct Mutant {
  Mutation mutation;
  uint32_t rank, op;
  uint32_t operand = 0;  // the first one concerned
  Program program;       // of that rank

  // The schedule with this rank's program replaced.
  Schedule of(const Schedule& s) const {
    Schedule mutated = s;
    mutated.program = [inner = s.program, rank = rank, changed = program](uint32_t r) {
      return r == rank ? changed : inner(r);
    };
    return mutated;
  }
};

class Mutator {
 public:
  Mutator(const Schedule& s, std::function<void(const Mutant&)> visit)
      : s_(s), visit_(std::move(visit)) {}

  void run() {
    for (rank_ = 0; rank_ < s_.ranks; ++rank_) {
      program_ = s_.program(rank_);
      for (op_ = 0; op_ < program_.ops.size(); ++op_) mutateOp();
    }
  }

 private:
  using Change = std::function<void(Op&)>;

  void mutateOp() {
    const Op& op = program_.ops[op_];
    structure();
    if (op.hasPeer())
      for (uint32_t shift = 1; shift < std::min(s_.ranks, 4u); ++shift)
        change(Mutation::Peer, [&](Op& o) { o.peer = (o.peer + shift) % s_.ranks; });
    neighbours(Mutation::Target, [](Op& o, uint32_t by) { o.dst.index += by; });
    if (op.kind == OpKind::Apply)
      change(Mutation::Apply,
             [](Op& o) { o.apply = o.apply == ApplyId::Scale ? ApplyId::Finish : ApplyId::Scale; });
    if (op.isSignal()) return;
    if (op.kind == OpKind::Reduce)
      operands();
    else if (op.kind != OpKind::Wait)
      neighbours(Mutation::Source, [](Op& o, uint32_t by) { o.src.index += by; });
    neighbours(Mutation::Chunks, [](Op& o, uint32_t by) { o.chunks += by; });
    neighbours(Mutation::Shape, [](Op& o, uint32_t by) { o.shape += by; });
  }

  void emit(Mutation mutation, Program program, uint32_t operand = 0) {
    visit_({mutation, rank_, op_, operand, std::move(program)});
  }

  void change(Mutation mutation, const Change& how) {
    Program p = program_;
    how(p.ops[op_]);
    emit(mutation, std::move(p));
  }

  void neighbours(Mutation mutation, const std::function<void(Op&, uint32_t)>& shift) {
    change(mutation, [&](Op& o) { shift(o, 1); });
    change(mutation, [&](Op& o) { shift(o, ~0u); });  // one down; 0 wraps to an absurd index
  }

  void structure() {
    const auto at = static_cast<std::ptrdiff_t>(op_);
    Program dropped = program_, doubled = program_;
    dropped.ops.erase(dropped.ops.begin() + at);
    emit(Mutation::Drop, std::move(dropped));
    doubled.ops.insert(doubled.ops.begin() + at, program_.ops[op_]);
    emit(Mutation::Duplicate, std::move(doubled));
    if (op_ + 1 == program_.ops.size()) return;
    Program swapped = program_;
    std::swap(swapped.ops[op_], swapped.ops[op_ + 1]);
    emit(Mutation::SwapOps, std::move(swapped));
  }

  void operands() {
    const Op& op = program_.ops[op_];
    for (uint32_t k = 0; k < op.operands; ++k) {
      const uint32_t slot = op.firstOperand + k;
      Program fewer = program_;
      for (uint32_t j = slot; j + 1 < op.firstOperand + op.operands; ++j)
        fewer.operands[j] = fewer.operands[j + 1];
      --fewer.ops[op_].operands;
      emit(Mutation::DropOperand, std::move(fewer), k);
      for (uint32_t by : {1u, ~0u}) {
        Program other = program_;
        other.operands[slot].index += by;
        emit(Mutation::Operand, std::move(other), k);
      }
      if (program_.operands[slot].owner != kMine) {
        Program elsewhere = program_;
        uint32_t& owner = elsewhere.operands[slot].owner;
        owner = (owner + 1) % s_.ranks;
        emit(Mutation::Owner, std::move(elsewhere), k);
      }
      if (k + 1 == op.operands) continue;
      Program swapped = program_;
      std::swap(swapped.operands[slot], swapped.operands[slot + 1]);
      emit(Mutation::SwapOperands, std::move(swapped), k);
    }
  }

  const Schedule& s_;
  std::function<void(const Mutant&)> visit_;
  Program program_;
  uint32_t rank_ = 0, op_ = 0;
};

}  // namespace weft::test
