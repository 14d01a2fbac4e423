// SPDX-License-Identifier: Apache-2.0
#include "schedule/embed.h"

#include <span>

namespace weft::schedule {
namespace {

const Axis* axisOf(const Place& at, Buf buf) {
  if (buf == Buf::In) return &at.in;
  return buf == Buf::Out ? &at.out : nullptr;
}

Slot placed(const Place& at, Slot s) {
  if (s.buf == Buf::Tmp) return tmp(at.tmp + s.index * at.scale);
  const Axis& axis = *axisOf(at, s.buf);
  return axis.first + s.index * axis.step;
}

// Do neighbouring chunks of the part stay neighbours in the parent's buffer?
bool contiguous(const Place& at, Buf buf) {
  const Axis* axis = axisOf(at, buf);
  return axis == nullptr || axis->step == at.scale;
}

bool contiguous(const Op& op, const Program& from, const Place& mine, const Place& peers) {
  if (mine.chunkStep != mine.scale || !contiguous(mine, op.src.buf)) return false;
  if (!contiguous(op.kind == OpKind::Put ? peers : mine, op.dst.buf)) return false;
  for (uint32_t i = 0; i < op.operands; ++i)
    if (!contiguous(mine, from.operands[op.firstOperand + i].buf)) return false;
  return true;
}

// The part's op, shifted by `chunk` chunks into its run, as `chunks` chunks of the parent.
void emit(Program& program, Op op, const Program& from, const Place& mine, const Place& peers,
          uint32_t chunk, uint32_t chunks) {
  const auto operands = std::span(from.operands).subspan(op.firstOperand, op.operands);
  op.firstOperand = static_cast<uint32_t>(program.operands.size());
  op.src = placed(mine, op.src + chunk);
  op.dst = placed(op.kind == OpKind::Put ? peers : mine, op.dst + chunk);
  op.shape = op.isSignal() ? 0 : mine.chunk + (op.shape + chunk) * mine.chunkStep;
  op.chunks = chunks;
  if (op.hasPeer()) op.peer = peers.rank;
  if (op.kind == OpKind::Copy && op.src == op.dst) return;
  for (const Slot operand : operands) program.operands.push_back(placed(mine, operand + chunk));
  program.ops.push_back(op);
}

}  // namespace

void embed(Program& program, const Schedule& part, uint32_t me, const Placement& placeOf) {
  const Program from = part.program(me);
  const Place mine = placeOf(me);
  for (const Op& op : from.ops) {
    if (op.kind == OpKind::Apply && op.apply == ApplyId::Finish && !mine.finish) continue;
    const Place peers = op.hasPeer() ? placeOf(op.peer) : mine;
    if (op.chunks <= 1 || contiguous(op, from, mine, peers)) {
      emit(program, op, from, mine, peers, 0, op.chunks * mine.scale);
      continue;
    }
    for (uint32_t c = 0; c < op.chunks; ++c) emit(program, op, from, mine, peers, c, mine.scale);
  }
}

}  // namespace weft::schedule
