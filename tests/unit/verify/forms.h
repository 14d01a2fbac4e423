// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "../broken_links.h"
#include "../plan/sample_machine.h"
#include "../slow_build.h"
#include "plan/candidate.h"
#include "schedule/nodes.h"
#include "schedule/registry.h"
#include "tests/verify/prove.h"

// Every form in which a plan may run a call: algorithm, protocol, transforms.
namespace weft::test {
using namespace verify;

struct Form {
  schedule::Schedule schedule;
  schedule::SumOrder order = schedule::SumOrder::None;
  bool cmaCopies = false;
};

// Binding makes the program of each rank once for each other rank.
inline schedule::Schedule withPrograms(schedule::Schedule s) {
  auto programs = std::make_shared<std::vector<schedule::Program>>();
  for (std::uint32_t r = 0; r < s.ranks; ++r) programs->push_back(s.program(r));
  s.program = [programs](std::uint32_t rank) { return (*programs)[rank]; };
  return s;
}

inline plan::Tuning tuningOf(const schedule::Shape& shape) {
  plan::Tuning t;
  t.ranks = shape.ranks;
  t.nodes = shape.nodeOf;
  t.direct = t.shares = t.maps = true;
  t.costs = plan::sampleCosts();
  return t;
}

// Those of one algorithm that decide() can return.
inline std::vector<Form> formsOf(const schedule::Algorithm& a, const plan::Call& call,
                                 const schedule::Shape& shape) {
  plan::Tuning tuning = tuningOf(shape);
  if (a.levels == schedule::Levels::Links) tuning.links = brokenLinks(shape.ranks);
  std::vector<Form> forms;
  for (const plan::Candidate& candidate : plan::candidatesOf(call, tuning)) {
    if (candidate.algorithm != &a) continue;
    forms.push_back({withPrograms(plan::scheduleOf(candidate, call, tuning)), a.order,
                     a.shared && candidate.isDirect()});
  }
  return forms;
}

// The operations that make a difference to a plan.
inline std::vector<reduce::RedOp> opsOf(schedule::Collective c) {
  if (c == schedule::Collective::AllGather) return {reduce::RedOp::Sum, reduce::RedOp::Epilogue};
  if (c == schedule::Collective::ReduceScatter)
    return {reduce::RedOp::Sum, reduce::RedOp::Avg, reduce::RedOp::PreMulSum,
            reduce::RedOp::Epilogue};
  if (schedule::isReduction(c))
    return {reduce::RedOp::Sum, reduce::RedOp::Avg, reduce::RedOp::PreMulSum};
  return {reduce::RedOp::Sum};
}

}  // namespace weft::test
