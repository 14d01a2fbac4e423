// SPDX-License-Identifier: Apache-2.0
#include "schedule/transforms.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

namespace weft::schedule {
namespace {

bool landsInOut(const Op& op) { return op.kind == OpKind::Put && op.dst.buf == Buf::Out; }

using Acts = std::vector<std::vector<bool>>;  // [rank][peer]: does it do something to the peer?

// [rank]: those who do it to that rank, starting with the next one.
std::vector<std::vector<uint32_t>> actorsOn(const Acts& acts) {
  const auto ranks = static_cast<uint32_t>(acts.size());
  std::vector<std::vector<uint32_t>> actors(ranks);
  for (uint32_t r = 0; r < ranks; ++r)
    for (const uint32_t actor : after(r, ranks))
      if (acts[actor][r]) actors[r].push_back(actor);
  return actors;
}

// The ranks that put into each one's Out.
std::vector<std::vector<uint32_t>> writersOf(const Schedule& s) {
  Acts puts(s.ranks, std::vector<bool>(s.ranks, false));
  for (uint32_t w = 0; w < s.ranks; ++w)
    for (const Op& op : s.program(w).ops)
      if (landsInOut(op)) puts[w][op.peer] = true;
  return actorsOn(puts);
}

// [peer]: does `program` end its use of the peer's In with a read, so that nothing tells the peer
// when it is through?
std::vector<bool> lastReads(const Program& program, uint32_t ranks) {
  std::vector<bool> reads(ranks, false);
  const auto read = [&](Slot slot) {
    if (slot.owner != kMine) reads[slot.owner] = true;
  };
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::Put) {
      reads[op.peer] = false;
      continue;
    }
    read(op.src);
    for (uint32_t k = 0; k < op.operands; ++k) read(program.operands[op.firstOperand + k]);
  }
  return reads;
}

// Those who read each one's In last of all.
std::vector<std::vector<uint32_t>> lastReadersOf(const Schedule& s) {
  Acts reads;
  for (uint32_t r = 0; r < s.ranks; ++r) reads.push_back(lastReads(s.program(r), s.ranks));
  return actorsOn(reads);
}

// Puts in place of each rank's program what `rewrite(me, old, new)` makes of it.
template <class Rewrite>
void rewritePrograms(Schedule& s, Rewrite rewrite) {
  s.program = [inner = std::move(s.program), rewrite = std::move(rewrite)](uint32_t me) {
    Program program;
    rewrite(me, inner(me), program);
    return program;
  };
}

}  // namespace

Schedule stageOut(Schedule s) {
  const uint32_t base = s.tmpChunks;
  s.name += "+staged";
  s.tmpChunks += s.outChunks;
  rewritePrograms(s, [base](uint32_t, const Program& old, Program& p) {
    for (Op op : old.ops) {
      const Slot final = op.dst;
      const bool waits = op.kind == OpKind::Wait && final.buf == Buf::Out;
      if (waits || landsInOut(op)) op.dst = tmp(base + final.index);
      if (waits) op.src = op.dst;
      p.append(op, old);
      if (waits) p.copy(op.dst, final, op.span());
    }
  });
  return s;
}

Schedule awaitClearToSend(Schedule s) {
  const uint32_t base = s.signals;
  auto writers = std::make_shared<const std::vector<std::vector<uint32_t>>>(writersOf(s));
  s.name += "+direct";
  s.signals += s.ranks;
  rewritePrograms(
      s, [writers = std::move(writers), base](uint32_t me, const Program& old, Program& p) {
        for (uint32_t writer : (*writers)[me]) p.signal(writer, base + me);
        std::set<uint32_t> cleared;
        for (const Op& op : old.ops) {
          if (landsInOut(op) && cleared.insert(op.peer).second) p.waitSignal(base + op.peer);
          p.append(op, old);
        }
      });
  return s;
}

Schedule openBuffers(Schedule s) {
  const uint32_t base = s.signals, n = s.ranks;
  auto readers = std::make_shared<const std::vector<std::vector<uint32_t>>>(lastReadersOf(s));
  s.signals += 2 * n;
  s.shared = true;
  rewritePrograms(
      s, [readers = std::move(readers), base, n](uint32_t me, const Program& old, Program& p) {
        for (const uint32_t peer : after(me, n)) p.signal(peer, base + me);
        for (const uint32_t peer : before(me, n)) p.waitSignal(base + peer);
        for (const Op& op : old.ops) p.append(op, old);
        const std::vector<bool> reads = lastReads(old, n);
        for (const uint32_t peer : after(me, n))
          if (reads[peer]) p.signal(peer, base + n + me);
        for (uint32_t reader : (*readers)[me]) p.waitSignal(base + n + reader);
      });
  return s;
}

Schedule makeFirst(Schedule s) {
  s.name += "+made";
  s.made = true;
  rewritePrograms(s, [](uint32_t me, const Program& old, Program& p) {
    bool made = false;
    const auto redirect = [&](Slot& slot) {
      if (slot.buf != Buf::In || slot.owner != kMine) return;
      if (!std::exchange(made, true)) p.apply(ApplyId::Finish, in(0), out(me), {me});
      slot = out(me);
    };
    for (Op op : old.ops) {
      if (op.kind != OpKind::Wait && !op.isSignal()) redirect(op.src);
      if (op.kind != OpKind::Copy || !(op.src == op.dst)) p.append(op, old);
    }
  });
  return s;
}

Schedule prescale(Schedule s) {
  const uint32_t base = s.tmpChunks, chunks = s.inChunks;
  s.name += "+scaled";
  s.scaled = true;
  s.tmpChunks += chunks;
  rewritePrograms(s, [base, chunks, root = s.root, collective = s.collective](
                         uint32_t me, const Program& old, Program& p) {
    if (chunks > 0 && hasIn(collective, root, me))
      p.apply(ApplyId::Scale, in(0), tmp(base), {logicalIn(collective, me, 0), chunks});
    const auto redirect = [base](Slot& slot) {
      if (slot.buf == Buf::In) slot = tmp(base + slot.index);
    };
    for (Op op : old.ops) {
      redirect(op.src);
      p.append(op, old);
    }
    for (Slot& operand : p.operands) redirect(operand);
  });
  return s;
}

}  // namespace weft::schedule
