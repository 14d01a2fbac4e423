// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "../broken_links.h"
#include "../slow_build.h"
#include "schedule/algorithms/generators.h"
#include "schedule/registry.h"
#include "schedule/transforms.h"
#include "verify/verify.h"

// What is proved about every algorithm: each form in which a plan may run it.
namespace weft::test {
using namespace schedule;

struct Form {
  Schedule schedule;
  verify::VerifyOptions options;
};

// A rank that completes has heard from all ranks, but for rooted collectives.
inline bool agreesByNature(Collective c) { return !isRooted(c); }

// Of an algorithm for links, over some of which a few are dead.
inline Schedule scheduleOf(const Algorithm& a, Shape shape) {
  if (a.levels == Levels::Links) shape.links = brokenLinks(shape.ranks);
  return a.make(shape);
}

inline Form plain(const Algorithm& a, const Shape& shape) {
  return {scheduleOf(a, shape),
          {.order = a.order,
           .agreement = a.shared || agreesByNature(a.collective),
           .outAfterEntry = a.shared}};
}

inline Form staged(const Algorithm& a, const Shape& shape) {
  Form f = plain(a, shape);
  f.schedule = stageOut(f.schedule);
  f.options.outAfterEntry = true;
  return f;
}

inline Form direct(const Algorithm& a, const Shape& shape) {
  Form f = plain(a, shape);
  f.schedule = awaitClearToSend(f.schedule);
  f.options.outAfterEntry = true;
  return f;
}

inline Form scaled(const Algorithm& a, const Shape& shape) {
  Form f = plain(a, shape);
  f.schedule = prescale(f.schedule);
  return f;
}

// The forms that call an epilogue of the caller's: of an all-gather, and of the reduce-scatter
// before it.
inline Form made(const Algorithm& a, const Shape& shape) {
  Form f = plain(a, shape);
  f.schedule = makeFirst(f.schedule);
  if (!a.shared) f.schedule = stageOut(f.schedule);
  return f;
}

inline Form step(const Algorithm& gather, const Shape& shape) {
  const Algorithm& scatter = *findAlgorithm(Collective::ReduceScatter, gather.name);
  Form f = plain(scatter, shape);
  f.schedule = stageOut(
      reduceScatterAllGather("step", scheduleOf(scatter, shape), scheduleOf(gather, shape)));
  return f;
}

inline std::vector<Form> allForms(const Algorithm& a, const Shape& shape) {
  std::vector<Form> forms{plain(a, shape)};
  if (a.collective == Collective::Barrier) return forms;
  if (!a.shared) {
    forms.push_back(staged(a, shape));
    forms.push_back(direct(a, shape));
    if (isReduction(a.collective)) forms.push_back(scaled(a, shape));
  }
  if (a.collective == Collective::AllGather) {
    if (!a.pulls) forms.push_back(made(a, shape));  // what is made lies in Out
    if (!a.shared) forms.push_back(step(a, shape));
  }
  return forms;
}

}  // namespace weft::test
