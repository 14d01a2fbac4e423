// SPDX-License-Identifier: Apache-2.0
#include "schedule/transforms.h"

#include <utility>

namespace weft::schedule {
namespace {

bool landsInOut(const Op& op) { return op.kind == OpKind::Put && op.dst.buf == Buf::Out; }

// The ranks that put into Out of the rank whose program this is.
std::vector<bool> writersOf(const Program& program, uint32_t ranks) {
  std::vector<bool> writes(ranks, false);
  for (const Op& op : program.ops)
    if (op.kind == OpKind::Wait && op.dst.buf == Buf::Out) writes[op.peer] = true;
  return writes;
}

constexpr std::size_t kNoOp = ~std::size_t{0};

// [peer]: the op with which `program` ends its use of the peer's In, if that is a read, so that nothing
// tells the peer that it is through.
std::vector<std::size_t> lastReads(const Program& program, uint32_t ranks) {
  std::vector<std::size_t> reads(ranks, kNoOp);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto read = [&](Slot slot) {
      if (slot.owner != kMine) reads[slot.owner] = i;
    };
    if (op.kind == OpKind::Put) {
      reads[op.peer] = kNoOp;
      continue;
    }
    read(op.src);
    for (uint32_t k = 0; k < op.operands; ++k) read(program.operands[op.firstOperand + k]);
  }
  return reads;
}

// [op]: whom `me` tells before it that it is through with their In, as nothing else does; before it waits
// for anybody, or behind the last op.
std::vector<std::vector<uint32_t>> tellings(const Program& program, uint32_t me, uint32_t ranks) {
  const std::size_t end = program.ops.size();
  std::vector<std::size_t> waitAfter(end + 1, end);
  for (std::size_t i = end; i-- > 0;)
    waitAfter[i] = program.ops[i].kind == OpKind::Wait ? i : waitAfter[i + 1];
  std::vector<std::vector<uint32_t>> peers(end + 1);
  const std::vector<std::size_t> reads = lastReads(program, ranks);
  for (const uint32_t peer : after(me, ranks))
    if (reads[peer] != kNoOp) peers[waitAfter[reads[peer]]].push_back(peer);
  return peers;
}

// Whose In is read last of all, by whom: as the typical ranks do. Roots and the others are of two kinds.
class LastReaders {
 public:
  explicit LastReaders(const Schedule& s) : root_(s.root) {
    for (const uint32_t r : s.typical) {
      const std::vector<std::size_t> reads = lastReads(s.program(r), s.ranks);
      for (uint32_t peer = 0; peer < s.ranks; ++peer)
        if (reads[peer] != kNoOp) reads_[r == root_][peer == root_] = true;
    }
  }
  bool read(uint32_t reader, uint32_t owner) const {
    return reads_[reader == root_][owner == root_];
  }

 private:
  uint32_t root_;
  bool reads_[2][2] = {};
};

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

Schedule publishOut(Schedule s) {
  const std::string name = s.name + "+published";
  s = stageOut(std::move(s));
  s.name = name;
  s.published = true;
  return s;
}

Schedule awaitClearToSend(Schedule s) {
  const uint32_t base = s.signals, n = s.ranks;
  s.name += "+direct";
  s.signals += n;
  rewritePrograms(s, [base, n](uint32_t me, const Program& old, Program& p) {
    const std::vector<bool> writers = writersOf(old, n);
    for (const uint32_t writer : after(me, n))
      if (writers[writer]) p.signal(writer, base + me);
    std::vector<bool> cleared(n, false);
    for (const Op& op : old.ops) {
      if (landsInOut(op) && !cleared[op.peer]) p.waitSignal(op.peer, base + op.peer);
      if (landsInOut(op)) cleared[op.peer] = true;
      p.append(op, old);
    }
  });
  return s;
}

Schedule openBuffers(Schedule s) {
  const uint32_t base = s.signals, n = s.ranks;
  const LastReaders readers(s);
  s.signals += 2 * n;
  s.shared = true;
  rewritePrograms(s, [readers, base, n](uint32_t me, const Program& old, Program& p) {
    for (const uint32_t peer : after(me, n)) p.signal(peer, base + me);
    for (const uint32_t peer : before(me, n)) p.waitSignal(peer, base + peer);
    const std::vector<std::vector<uint32_t>> told = tellings(old, me, n);
    for (std::size_t i = 0; i <= old.ops.size(); ++i) {
      for (const uint32_t peer : told[i]) p.signal(peer, base + n + me);
      if (i < old.ops.size()) p.append(old.ops[i], old);
    }
    for (const uint32_t peer : after(me, n))
      if (readers.read(peer, me)) p.waitSignal(peer, base + n + peer);
  });
  return s;
}

Schedule makeFirst(Schedule s) {
  s.name += "+made";
  s.made = true;
  rewritePrograms(s, [parts = s.parts](uint32_t me, const Program& old, Program& p) {
    bool made = false;
    const auto redirect = [&](Slot& slot) {
      if (slot.buf != Buf::In || slot.owner != kMine) return;
      if (!std::exchange(made, true))
        p.apply(ApplyId::Finish, in(0), out(me * parts), {me * parts, parts});
      slot = out(me * parts + slot.index);
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
  rewritePrograms(s, [base, chunks, root = s.root, collective = s.collective, parts = s.parts](
                         uint32_t me, const Program& old, Program& p) {
    if (chunks > 0 && hasIn(collective, root, me))
      p.apply(ApplyId::Scale, in(0), tmp(base), {logicalIn(collective, me, 0, parts), chunks});
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
