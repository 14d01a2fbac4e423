// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bytes.h"
#include "forms.h"
#include "mutants.h"

// Why a mutant that the verifier accepts does no harm, decided from the ops themselves, and shown
// on real bytes in early, late and random interleavings.
namespace weft::test {
using namespace schedule;

enum class Harmless { NeighboursCommute, AddendsCommute, EqualBlocks, Overwritten, Unexplained };

struct Touched {
  Slot slot;
  uint32_t chunks;
  bool write;
};

// The slots of the op's own rank that it reads or writes; a Wait makes its run readable.
inline std::vector<Touched> touchedBy(const Op& op, const Program& program) {
  if (op.isSignal()) return {};
  if (op.kind == OpKind::Wait) return {{op.dst, op.chunks, true}};
  if (op.kind == OpKind::Put) return {{op.src, op.chunks, false}};
  std::vector<Touched> touched{{op.dst, op.chunks, true}};
  if (op.kind != OpKind::Reduce) touched.push_back({op.src, op.chunks, false});
  for (uint32_t k = 0; k < op.operands; ++k)
    touched.push_back({program.operands[op.firstOperand + k], op.chunks, false});
  return touched;
}

inline bool conflict(const Touched& a, const Touched& b) {
  return (a.write || b.write) && a.slot.buf == b.slot.buf && a.slot.owner == b.slot.owner &&
         a.slot.index < b.slot.index + b.chunks && b.slot.index < a.slot.index + a.chunks;
}

inline bool commute(const Program& p, uint32_t op) {
  for (const Touched& a : touchedBy(p.ops[op], p))
    for (const Touched& b : touchedBy(p.ops[op + 1], p))
      if (conflict(a, b)) return false;
  return true;
}

// A Copy or a Reduce of more than it should: does the next op that touches the rest, if any, overwrite it?
inline bool overwrittenLater(const Program& p, uint32_t op) {
  const Op& copy = p.ops[op];
  if ((copy.kind != OpKind::Copy && copy.kind != OpKind::Reduce) || copy.chunks != 2) return false;
  const Touched extra{copy.dst + 1, 1, true};
  for (uint32_t i = op + 1; i < p.ops.size(); ++i) {
    if (p.ops[i].kind == OpKind::Copy && p.ops[i].dst == extra.slot) return true;
    for (const Touched& t : touchedBy(p.ops[i], p))
      if (conflict(extra, t)) return false;
  }
  return extra.slot.buf == Buf::Tmp;  // nobody ever looks
}

inline Harmless explain(const Mutant& m, SumOrder order, Collective collective) {
  switch (m.mutation) {
    case Mutation::SwapOps:
      if (commute(m.program, m.op)) return Harmless::NeighboursCommute;
      break;
    case Mutation::SwapOperands:  // x0 + x1 = x1 + x0; or each sum is formed once, in any order
      if (m.operand == 0 || order == SumOrder::Algorithm) return Harmless::AddendsCommute;
      break;
    case Mutation::Chunks:
      if (overwrittenLater(m.program, m.op)) return Harmless::Overwritten;
      break;
    case Mutation::Shape:  // only lengths depend on it, and these are all equal
      if (collective == Collective::AllToAll) return Harmless::EqualBlocks;
      break;
    default:
      break;
  }
  return Harmless::Unexplained;
}

inline bool rightOnBytes(const Schedule& s) {
  std::vector<size_t> lengths(s.logicalChunks, 2);
  ByteRun bytes(s, lengths);
  if (!bytes.run(Delivery::Early, 1).empty() || !bytes.run(Delivery::Late, 1).empty()) return false;
  for (unsigned seed = 0; seed < 3; ++seed)
    if (!bytes.run(Delivery::Random, seed).empty()) return false;
  return true;
}

}  // namespace weft::test
