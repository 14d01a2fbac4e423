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

Schedule withAgreement(Schedule s) {
  const uint32_t base = s.signals;
  const Schedule barrier = disseminationBarrier(s.ranks);
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

Schedule stageIn(Schedule s) { return readFromTmp(std::move(s), OpKind::Copy, "+stagedIn"); }

Schedule prescale(Schedule s) {
  s.scaled = true;
  return readFromTmp(std::move(s), OpKind::Kernel, "+scaled");
}

}  // namespace weft
