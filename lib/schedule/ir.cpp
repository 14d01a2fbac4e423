// SPDX-License-Identifier: Apache-2.0
#include "schedule/ir.h"

namespace weft {

void Program::put(uint32_t peer, Slot src, Slot dst, Span what) {
  ops.push_back({.kind = OpKind::Put,
                 .peer = peer,
                 .src = src,
                 .dst = dst,
                 .chunks = what.chunks,
                 .shape = what.first});
}

void Program::wait(Slot dst, Span what) {
  ops.push_back(
      {.kind = OpKind::Wait, .src = dst, .dst = dst, .chunks = what.chunks, .shape = what.first});
}

void Program::signal(uint32_t peer, uint32_t index) {
  put(peer, signalSlot(index), signalSlot(index), {0, 0});
}

void Program::waitSignal(uint32_t index) { wait(signalSlot(index), {0, 0}); }

void Program::copy(Slot src, Slot dst, Span what) {
  if (src == dst) return;
  ops.push_back(
      {.kind = OpKind::Copy, .src = src, .dst = dst, .chunks = what.chunks, .shape = what.first});
}

void Program::reduce(Slot dst, const std::vector<Slot>& sources, Span what) {
  if (sources.size() == 1) return copy(sources[0], dst, what);
  const auto first = static_cast<uint32_t>(operands.size());
  operands.insert(operands.end(), sources.begin(), sources.end());
  ops.push_back({.kind = OpKind::Reduce,
                 .src = sources[0],
                 .dst = dst,
                 .chunks = what.chunks,
                 .shape = what.first,
                 .firstOperand = first,
                 .operands = static_cast<uint32_t>(sources.size())});
}

void Program::kernel(KernelId id, Slot src, Slot dst, Span what) {
  ops.push_back({.kind = OpKind::Kernel,
                 .kernel = id,
                 .src = src,
                 .dst = dst,
                 .chunks = what.chunks,
                 .shape = what.first});
}

void Program::append(Op op, const Program& from) {
  const auto begin = from.operands.begin() + op.firstOperand;
  op.firstOperand = static_cast<uint32_t>(operands.size());
  operands.insert(operands.end(), begin, begin + op.operands);
  ops.push_back(op);
}

}  // namespace weft
