// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_hash.h"

#include "base/hash.h"

namespace weft::plan {
namespace {

void add(const Place& place, Hash* hash) {
  hash->add(static_cast<std::uint64_t>(place.base)).add(place.peer).add(place.offset);
}

void add(const BoundOp& op, Hash* hash) {
  hash->add(static_cast<std::uint64_t>(op.kind)).add(op.drain).add(op.finish).add(op.stream);
  hash->add(op.peer).add(op.arrival).add(op.clearToSend);
  hash->add(op.operands).add(op.first).add(op.spread).add(op.firstSpread).add(op.crossings);
  add(op.src, hash);
  add(op.dst, hash);
  hash->add(op.max).add(op.limit);
}

// Without what would run otherwise.
Hash hashOfOne(const Plan& plan, bool copies) {
  Hash hash;
  hash.add(plan.algorithm).add(static_cast<std::uint64_t>(plan.type)).add(plan.divisor);
  hash.add(plan.segments).add(plan.segmentBytes).add(plan.depth).add(plan.inRing).add(plan.lead);
  hash.add(plan.stageBytes);
  hash.add(plan.tells).add(plan.opening).add(copies).add(plan.callsEpilogue);
  for (const std::uint32_t reader : plan.readers) hash.add(reader);
  for (const BoundOp& op : plan.ops) add(op, &hash);
  for (const Place& place : plan.operands) add(place, &hash);
  return hash;
}

}  // namespace

std::uint64_t hashOf(const Plan& plan) {
  Hash hash = hashOfOne(plan, plan.cmaCopies);
  if (plan.otherwise) hash.add(hashOf(*plan.otherwise));
  return hash.value();
}

std::uint64_t hashOfRun(const Plan& plan, bool sharesBuffers) {
  return hashOfOne(plan, plan.cmaCopies && !sharesBuffers).value();
}

}  // namespace weft::plan
