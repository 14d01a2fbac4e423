// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "schedule/generators.h"
#include "schedule/registry.h"
#include "schedule/transforms.h"
#include "schedule/verify.h"

// What is proved about every algorithm: each form in which a plan may run it.
namespace weft::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEFT_SLOW_BUILD 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define WEFT_SLOW_BUILD 1
#endif
#ifdef WEFT_SLOW_BUILD
inline constexpr bool kSlowBuild = true;  // smaller sweeps
#else
inline constexpr bool kSlowBuild = false;
#endif

struct Form {
  Schedule schedule;
  VerifyOptions options;
};

// A rank that completes has heard from all ranks, by the nature of the collective.
inline bool agreesByNature(Collective c) { return !isRooted(c); }

inline Form plain(const Algorithm& a, const Shape& shape) {
  return {a.make(shape),
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

inline Form granted(const Algorithm& a, const Shape& shape) {
  Form f = plain(a, shape);
  const bool few = shape.ranks <= 8;  // either barrier, as plans do
  f.schedule = withAgreement(grantOut(f.schedule),
                             few ? directBarrier(shape.ranks) : disseminationBarrier(shape.ranks));
  f.options.outAfterEntry = f.options.agreement = true;
  return f;
}

inline Form scaled(const Algorithm& a, const Shape& shape) {
  Form f = plain(a, shape);
  f.schedule = prescale(f.schedule);
  return f;
}

// The forms that call a kernel of the caller's: of an all-gather, and of the reduce-scatter before
// it.
inline Form made(const Algorithm& a, const Shape& shape) {
  Form f = plain(a, shape);
  f.schedule = makeFirst(f.schedule);
  if (!a.shared) f.schedule = stageOut(f.schedule);
  return f;
}

inline Form step(const Algorithm& gather, const Shape& shape) {
  const Algorithm& scatter = *findAlgorithm(Collective::ReduceScatter, gather.name);
  Form f = plain(scatter, shape);
  f.schedule = stageOut(reduceScatterAllGather("step", scatter.make(shape), gather.make(shape)));
  return f;
}

// The form that a plan uses in place.
inline Form inPlace(const Algorithm& a, Form f) {
  if (!a.inPlace && !f.schedule.scaled) f.schedule = stageIn(f.schedule);
  f.options.inPlace = true;
  return f;
}

inline std::vector<Form> allForms(const Algorithm& a, const Shape& shape) {
  std::vector<Form> forms{plain(a, shape)};
  if (a.collective == Collective::Barrier) return forms;
  if (!a.shared) {
    forms.push_back(staged(a, shape));
    forms.push_back(granted(a, shape));
    if (isReduction(a.collective)) forms.push_back(scaled(a, shape));
  }
  if (a.collective == Collective::AllGather) {
    forms.push_back(made(a, shape));
    if (!a.shared) forms.push_back(step(a, shape));
  }
  if (!allowsInPlace(a.collective)) return forms;
  for (size_t i = 0, outOfPlace = forms.size(); i < outOfPlace; ++i)
    forms.push_back(inPlace(a, forms[i]));
  return forms;
}

// With the reuse of slots over one more invocation than they are deep.
inline Form reused(Form f) {
  f.options.invocations = kReuseDepth + 1;
  return f;
}

}  // namespace weft::test
