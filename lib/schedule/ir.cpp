// SPDX-License-Identifier: Apache-2.0
#include "schedule/ir.h"

#include <algorithm>

#include "base/text.h"

namespace weft::schedule {

bool Program::putsAgain(const Op& op) const {
  if (op.kind != OpKind::Put || &op == ops.data()) return false;
  const Op& before = *(&op - 1);
  return before.kind == OpKind::Put && before.src == op.src && before.dst == op.dst &&
         before.shape == op.shape && before.chunks == op.chunks;
}

Op& Program::add(OpKind kind, Slot src, Slot dst, Span what) {
  return ops.emplace_back(
      Op{.kind = kind, .src = src, .dst = dst, .chunks = what.chunks, .shape = what.first});
}

void Program::put(uint32_t peer, Slot src, Slot dst, Span what) {
  add(OpKind::Put, src, dst, what).peer = peer;
}

void Program::wait(uint32_t peer, Slot dst, Span what) {
  add(OpKind::Wait, dst, dst, what).peer = peer;
}

void Program::signal(uint32_t peer, uint32_t index) {
  put(peer, signalSlot(index), signalSlot(index), {0, 0});
}

void Program::waitSignal(uint32_t peer, uint32_t index) { wait(peer, signalSlot(index), {0, 0}); }

void Program::copy(Slot src, Slot dst, Span what) {
  if (!(src == dst)) add(OpKind::Copy, src, dst, what);
}

void Program::reduce(Slot dst, const std::vector<Slot>& sources, Span what) {
  if (sources.size() == 1) return copy(sources[0], dst, what);
  Op& op = add(OpKind::Reduce, sources[0], dst, what);
  op.firstOperand = static_cast<uint32_t>(operands.size());
  op.operands = static_cast<uint32_t>(sources.size());
  operands.insert(operands.end(), sources.begin(), sources.end());
}

void Program::apply(ApplyId id, Slot src, Slot dst, Span what) {
  add(OpKind::Apply, src, dst, what).apply = id;
}

void Program::append(Op op, const Program& from) {
  const auto begin = from.operands.begin() + op.firstOperand;
  op.firstOperand = static_cast<uint32_t>(operands.size());
  operands.insert(operands.end(), begin, begin + op.operands);
  ops.push_back(op);
}

Schedule emptySchedule(Collective c, std::string_view algorithm, uint32_t ranks, uint32_t chunks,
                       uint32_t root, uint32_t parts) {
  chunks *= parts;
  const uint32_t slots = c == Collective::Barrier ? 0 : chunks;
  return {.name = text(nameOf(c), " ", algorithm),
          .collective = c,
          .root = root,
          .ranks = ranks,
          .inChunks = hasOneIn(c) ? parts : slots,
          .outChunks = hasOneOut(c) ? parts : slots,
          .logicalChunks = chunks,
          .parts = parts,
          .typical = {root, (root + 1) % ranks}};
}

std::vector<uint32_t> after(uint32_t me, uint32_t n) {
  std::vector<uint32_t> ranks;
  for (uint32_t k = 1; k < n; ++k) ranks.push_back((me + k) % n);
  return ranks;
}

std::vector<uint32_t> before(uint32_t me, uint32_t n) {
  std::vector<uint32_t> ranks = after(me, n);
  std::ranges::reverse(ranks);
  return ranks;
}

}  // namespace weft::schedule
