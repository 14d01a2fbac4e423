// SPDX-License-Identifier: Apache-2.0
#include "schedule/transforms.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "schedule/embed.h"
#include "schedule/generators.h"

namespace weft {
namespace {

bool landsInOut(const Op& op) { return op.kind == OpKind::Put && op.dst.buf == Buf::Out; }

// [rank]: the ranks that put into its Out, starting with the next one.
std::vector<std::vector<uint32_t>> writersOf(const Schedule& s) {
  std::vector<std::vector<uint32_t>> writers(s.ranks);
  for (uint32_t w = 0; w < s.ranks; ++w)
    for (const Op& op : s.program(w).ops)
      if (landsInOut(op) && (writers[op.peer].empty() || writers[op.peer].back() != w))
        writers[op.peer].push_back(w);
  for (uint32_t r = 0; r < s.ranks; ++r) {
    const auto next = std::lower_bound(writers[r].begin(), writers[r].end(), r);
    std::rotate(writers[r].begin(), next, writers[r].end());
  }
  return writers;
}

// Does `program` end its use of `peer`'s In with a read, so that nothing tells the peer when it is
// through?
bool readsLast(const Program& program, uint32_t peer) {
  bool reads = false;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::Put) {
      reads = reads && op.peer != peer;
      continue;
    }
    reads = reads || op.src.owner == peer;
    for (uint32_t k = 0; k < op.operands; ++k)
      reads = reads || program.operands[op.firstOperand + k].owner == peer;
  }
  return reads;
}

// [rank]: those who read its In last of all, starting with the next one.
std::vector<std::vector<uint32_t>> lastReadersOf(const Schedule& s) {
  std::vector<Program> programs;
  for (uint32_t r = 0; r < s.ranks; ++r) programs.push_back(s.program(r));
  std::vector<std::vector<uint32_t>> readers(s.ranks);
  for (uint32_t r = 0; r < s.ranks; ++r)
    for (uint32_t k = 1; k < s.ranks; ++k)
      if (readsLast(programs[(r + k) % s.ranks], r)) readers[r].push_back((r + k) % s.ranks);
  return readers;
}

// `s` with every In slot read from Tmp instead, after `fill` has filled it.
Schedule readFromTmp(Schedule s, OpKind fill, const char* suffix) {
  const uint32_t base = s.tmpChunks;
  s.name += suffix;
  s.tmpChunks += s.inChunks;
  s.program = [inner = std::move(s.program), fill, base, chunks = s.inChunks, root = s.root,
               collective = s.collective](uint32_t me) {
    const Program before = inner(me);
    Program p;
    if (chunks > 0 && hasIn(collective, root, me))
      p.ops.push_back({.kind = fill,
                       .kernel = KernelId::Scale,
                       .src = in(0),
                       .dst = tmp(base),
                       .chunks = chunks,
                       .shape = logicalIn(collective, me, 0)});
    const auto redirect = [base](Slot& slot) {
      if (slot.buf == Buf::In) slot = tmp(base + slot.index);
    };
    for (const Op& op : before.ops) p.append(op, before);
    for (size_t i = p.ops.size() - before.ops.size(); i < p.ops.size(); ++i) redirect(p.ops[i].src);
    for (Slot& operand : p.operands) redirect(operand);
    return p;
  };
  return s;
}

}  // namespace

Schedule stageOut(Schedule s) {
  const uint32_t base = s.tmpChunks;
  s.name += "+staged";
  s.tmpChunks += s.outChunks;
  s.program = [inner = std::move(s.program), base](uint32_t me) {
    const Program before = inner(me);
    Program p;
    for (Op op : before.ops) {
      const Slot final = op.dst;
      const bool waits = op.kind == OpKind::Wait && final.buf == Buf::Out;
      if (waits || landsInOut(op)) op.dst = tmp(base + final.index);
      if (waits) op.src = op.dst;
      p.append(op, before);
      if (waits) p.copy(op.dst, final, op.span());
    }
    return p;
  };
  return s;
}

Schedule grantOut(Schedule s) {
  const uint32_t base = s.signals;
  auto writers = std::make_shared<const std::vector<std::vector<uint32_t>>>(writersOf(s));
  s.name += "+granted";
  s.signals += s.ranks;
  s.program = [inner = std::move(s.program), writers = std::move(writers), base](uint32_t me) {
    const Program before = inner(me);
    Program p;
    for (uint32_t writer : (*writers)[me]) p.signal(writer, base + me);
    std::set<uint32_t> granted;
    for (const Op& op : before.ops) {
      if (landsInOut(op) && granted.insert(op.peer).second) p.waitSignal(base + op.peer);
      p.append(op, before);
    }
    return p;
  };
  return s;
}

Schedule openBuffers(Schedule s) {
  const uint32_t base = s.signals, n = s.ranks;
  auto readers = std::make_shared<const std::vector<std::vector<uint32_t>>>(lastReadersOf(s));
  s.signals += 2 * n;
  s.shared = true;
  s.program = [inner = std::move(s.program), readers = std::move(readers), base, n](uint32_t me) {
    const Program before = inner(me);
    Program p;
    for (uint32_t k = 1; k < n; ++k) p.signal((me + k) % n, base + me);
    for (uint32_t k = 1; k < n; ++k) p.waitSignal(base + (me + n - k) % n);
    for (const Op& op : before.ops) p.append(op, before);
    for (uint32_t k = 1; k < n; ++k)
      if (readsLast(before, (me + k) % n)) p.signal((me + k) % n, base + n + me);
    for (uint32_t reader : (*readers)[me]) p.waitSignal(base + n + reader);
    return p;
  };
  return s;
}

Schedule withAgreement(Schedule s, const Schedule& barrier) {
  const uint32_t base = s.signals;
  s.name += "+agreed";
  s.signals += barrier.signals;
  s.program = [inner = std::move(s.program), barrier, base](uint32_t me) {
    const Program before = inner(me);
    Program p;
    auto op = before.ops.begin();
    for (; op != before.ops.end() && op->kind != OpKind::Wait; ++op) p.append(*op, before);
    embed(p, barrier, me, [base](uint32_t r) { return Place{.rank = r, .signal = base}; });
    for (; op != before.ops.end(); ++op) p.append(*op, before);
    return p;
  };
  return s;
}

Schedule makeFirst(Schedule s) {
  s.name += "+made";
  s.made = true;
  s.program = [inner = std::move(s.program)](uint32_t me) {
    const Program before = inner(me);
    Program p;
    bool made = false;
    const auto redirect = [&](Slot& slot) {
      if (slot.buf != Buf::In || slot.owner != kMine) return;
      if (!std::exchange(made, true)) p.kernel(KernelId::Finish, in(0), out(me), {me});
      slot = out(me);
    };
    for (Op op : before.ops) {
      if (op.kind != OpKind::Wait && !op.isSignal()) redirect(op.src);
      if (op.kind != OpKind::Copy || !(op.src == op.dst)) p.append(op, before);
    }
    return p;
  };
  return s;
}

Schedule stageIn(Schedule s) { return readFromTmp(std::move(s), OpKind::Copy, "+stagedIn"); }

Schedule prescale(Schedule s) {
  s.scaled = true;
  return readFromTmp(std::move(s), OpKind::Kernel, "+scaled");
}

}  // namespace weft
