// SPDX-License-Identifier: Apache-2.0
#include "plan/trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plan/cache.h"
#include "sample_machine.h"

namespace weft::plan {
namespace {

// Calls until all forms have run, of which each takes what `ns` says. Returns which ran.
std::vector<int> runAll(Trial& trial, const std::vector<double>& ns, bool shared = false) {
  std::vector<int> ran;
  while (!trial.isDue()) {
    EXPECT_TRUE(trial.isTimed());
    ran.push_back(trial.form());
    const double start = 1e9 + 1e6 * static_cast<double>(ran.size());
    trial.ran(start, start + ns[trial.form()], shared);
  }
  return ran;
}

std::uint32_t quietCalls(Trial& trial) {
  std::uint32_t calls = 0;
  while (!trial.isTimed()) ++calls;
  return calls;
}

TEST(Trial, TheQuickestIsTaken) {
  Trial trial(3);
  const std::vector<int> ran = runAll(trial, {100, 80, 120});
  for (int form = 0; form < 3; ++form)
    EXPECT_EQ(std::ranges::count(ran, form), std::ptrdiff_t{Trial::kRuns.all});
  EXPECT_EQ(ran[0], 0);  // the model's choice comes first
  trial.judge();
  EXPECT_EQ(trial.chosen(), 1);
  EXPECT_EQ(trial.form(), 1);
  EXPECT_EQ(trial.ns(0), 100);
  EXPECT_EQ(trial.ns(1), 80);
}

TEST(Trial, WhatIsHardlyQuickerIsNot) {
  Trial trial(2);
  runAll(trial, {100, 95});
  trial.judge();
  EXPECT_EQ(trial.chosen(), 0);
}

TEST(Trial, ComesAgainEverMoreSeldomAndFollows) {
  Trial trial(2);
  std::uint32_t last = 0;
  for (const bool second : {true, true, false, false, true}) {
    const auto judgeOne = [&] {
      runAll(trial, second ? std::vector<double>{100, 70} : std::vector<double>{70, 100});
      trial.judge();
      return trial.chosen() == (second ? 1 : 0);
    };
    if (!judgeOne()) {  // the one in use takes longer than it did: a second time, soon
      EXPECT_EQ(quietCalls(trial), Trial::kSoon);
      EXPECT_TRUE(judgeOne());
    }
    const std::uint32_t quiet = quietCalls(trial);
    EXPECT_GE(quiet, last);
    EXPECT_GE(quiet, Trial::kQuiet);
    EXPECT_LE(quiet, Trial::kMostQuiet);
    last = quiet;
  }
  EXPECT_EQ(last, Trial::kMostQuiet);
}

// What the form in use met in one trial, by chance, is not what it takes.
TEST(Trial, OneSlowTrialOfTheFormInUseDecidesNothing) {
  Trial trial(2);
  const auto judgeOne = [&](double ofFirst) {
    runAll(trial, {ofFirst, 100});
    trial.judge();
    const std::uint8_t chosen = trial.chosen();
    return std::pair(chosen, quietCalls(trial));
  };
  judgeOne(70);
  const auto [inDoubt, soon] = judgeOne(300);
  EXPECT_EQ(inDoubt, 0);
  EXPECT_EQ(soon, Trial::kSoon);
  const auto [still, later] = judgeOne(70);
  EXPECT_EQ(still, 0);
  EXPECT_GT(later, Trial::kQuiet);
  judgeOne(300);
  EXPECT_EQ(judgeOne(300).first, 1);
}

// Where what is in use takes what it did, another that has become quicker is taken at once.
TEST(Trial, WhatHasBecomeQuickerIsTakenAtOnce) {
  Trial trial(2);
  runAll(trial, {100, 200});
  trial.judge();
  EXPECT_EQ(quietCalls(trial), Trial::kQuiet);
  runAll(trial, {100, 70});
  trial.judge();
  EXPECT_EQ(trial.chosen(), 1);
}

// A form that is far slower is tried again, but not each time.
TEST(Trial, WhatIsFarSlowerIsSeldomTried) {
  Trial trial(3);
  int tried = 0;
  for (std::uint32_t round = 0; round < 2 * Trial::kAllEvery; ++round) {
    const std::vector<int> ran = runAll(trial, {100, 120, 400});
    EXPECT_EQ(std::ranges::count(ran, 1), std::ptrdiff_t{Trial::kRuns.all});
    if (std::ranges::count(ran, 2) != 0) ++tried;
    trial.judge();
    quietCalls(trial);
  }
  EXPECT_EQ(tried, static_cast<int>(Trial::kAllFirst) + 1);
}

// Ranks that come late make all of a call's ranks wait: a call takes from the last entry on.
TEST(Trial, LateRanksCostNoFormAnything) {
  Trial early(2), late(2);
  while (!early.isDue()) {
    const double left = 1e9 + (early.form() == 0 ? 100 : 40);
    early.ran(1e9 - (early.form() == 0 ? 0 : 900), left, false);
    late.ran(1e9, left, false);
  }
  const auto all = early.times(), others = late.times();
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], others[i]);
  early.judge();
  EXPECT_EQ(early.ns(0), 100);
  EXPECT_EQ(early.chosen(), 1);
}

// The first rank has done half of it before the second one has the core: each form takes its ranks'
// mean, though from the last entry on the one that leaves most to the first rank looks the quicker.
TEST(Trial, OnSharedCoresCallsTakeTheirRanksMean) {
  Trial first(2, Trial::Cores::Shared), second(2, Trial::Cores::Shared);
  while (!first.isDue()) {
    const bool model = first.form() == 0;
    first.ran(1e9, 1e9 + (model ? 100 : 60), {});
    second.ran(1e9 + (model ? 90 : 20), 1e9 + (model ? 110 : 70), {});
  }
  EXPECT_EQ(first.togetherBy(), reduce::RedOp::Avg);
  const auto all = first.times(), others = second.times();
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = (all[i] + others[i]) / 2;
  first.judge();
  EXPECT_EQ(first.ns(0), 60);
  EXPECT_EQ(first.ns(1), 55);
  EXPECT_EQ(first.chosen(), 0) << "hardly quicker";
}

// One that met something else, and one after a pause.
TEST(Trial, TwoSlowCallsDecideNothing) {
  Trial trial(2);
  int calls = 0;
  while (!trial.isDue())
    trial.ran(0, trial.form() == 0 && ++calls > Trial::kRuns.all - 2 ? 1e6 : 100, false);
  trial.judge();
  EXPECT_EQ(trial.chosen(), 0);
}

// Long calls run each form three times, of which the quicker one of the last two counts.
TEST(Trial, OfLongCallsIsShort) {
  static_assert(Trial::runsOf(Trial::kLongNs).all < Trial::runsOf(Trial::kLongNs - 1).all);
  Trial trial(3, Trial::Cores::OfTheirOwn, false, Trial::runsOf(Trial::kLongNs));
  int calls = 0;
  for (; !trial.isDue(); ++calls) {
    const bool isFirst = calls % Trial::kLongRuns.all == 0,
               isLast = calls % Trial::kLongRuns.all == 2;
    trial.ran(0, isFirst ? 9e6 : trial.form() == 2 && isLast ? 3e6 : 4e6, false);
  }
  EXPECT_EQ(calls, 3 * Trial::kLongRuns.all);
  EXPECT_EQ(trial.times().size(), 2u * 3 * Trial::kLongRuns.counted);
  trial.judge();
  EXPECT_EQ(trial.ns(0), 4e6);
  EXPECT_EQ(trial.ns(2), 3e6);
  EXPECT_EQ(trial.chosen(), 2);
}

// What calls on other buffers took has nothing to do with these forms.
TEST(Trial, CallsOnOtherBuffersDecideNothing) {
  for (const bool ofShared : {false, true}) {
    Trial trial(2, Trial::Cores::OfTheirOwn, ofShared);
    for (int call = 0; !trial.isDue(); ++call)
      trial.ran(0, trial.form() == 0 ? 100 : 10, call == 0 ? !ofShared : ofShared);
    trial.judge();
    EXPECT_EQ(trial.chosen(), 0);
    while (!trial.isTimed()) {
    }
    runAll(trial, {100, 10}, ofShared);
    trial.judge();
    EXPECT_EQ(trial.chosen(), 1);
  }
}

// Nothing is known of buffers where nobody asked.
TEST(Trial, FormsThatDoNotAskAreOfTheirTrialsBuffers) {
  Trial trial(2, Trial::Cores::OfTheirOwn, true);
  while (!trial.isDue()) {
    const bool asks = trial.form() == 1;
    trial.ran(0, asks ? 10 : 100, asks ? std::optional(true) : std::nullopt);
  }
  trial.judge();
  EXPECT_EQ(trial.chosen(), 1);
}

TEST(Trial, OneFormIsNotTimed) { EXPECT_FALSE(Trial(1).isTimed()); }

// ---- kinds of calls

class Kinds : public ::testing::Test {
 protected:
  static Tuning tuning() {
    Tuning t = oneHost(2);
    t.shares = t.direct = t.tries = true;
    return t;
  }
  // Finds the call's plan, and says that its forms take so long, by form.
  std::string run(const Call& call, double ns = 100) {
    const Plan* plan = nullptr;
    EXPECT_TRUE(cache_.find(call, &plan).ok());
    Trial* const trial = cache_.trial();
    if (trial == nullptr) return plan->otherwise ? plan->otherwise->algorithm : plan->algorithm;
    trial->ran(0, ns / (1 + trial->form()), false);
    if (trial->isDue()) cache_.judge(*trial);
    return plan->otherwise ? plan->otherwise->algorithm : plan->algorithm;
  }

  PlanCache cache_{tuning(), targetOf(tuning())};
};

TEST_F(Kinds, CallsRunWhatTheirKindHasFoundOut) {
  const Call call = callOf(schedule::Collective::AllGather, 8 << 10);
  Decision decision;
  ASSERT_TRUE(decide(call, tuning(), &decision).ok());
  ASSERT_GE(decision.forms.any.size(), 2u);
  for (std::size_t i = 0; i < decision.forms.any.size() * Trial::kRuns.all; ++i) {
    EXPECT_FALSE(cache_.findings(call).has_value());
    run(call);
  }
  const auto found = cache_.findings(call);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->chosen, decision.forms.any.back());  // the last one was said to be the quickest
  Decision chosen;
  ASSERT_TRUE(decide(call, tuning(), &chosen, &found->chosen).ok());
  EXPECT_EQ(run(call), chosen.schedule.name);
  // Its like, too, at once.
  EXPECT_EQ(run(callOf(schedule::Collective::AllGather, (8 << 10) + 8)), chosen.schedule.name);
}

// By what a call on such buffers takes: those that are not shared may be the only long ones.
TEST_F(Kinds, OfLongCallsTryEachFormThrice) {
  std::size_t onlyAny = 0;
  for (std::uint64_t count = 1 << 20; count <= 64 << 20; count *= 2) {
    const Call call = callOf(schedule::Collective::AllReduce, count);
    Decision decision;
    ASSERT_TRUE(decide(call, tuning(), &decision).ok());
    const std::size_t runs = Trial::runsOf(decision.forms.anyNs).all;
    onlyAny += runs != Trial::runsOf(decision.forms.sharedNs).all;
    for (std::size_t i = 0; i < decision.forms.any.size() * runs; ++i) {
      EXPECT_FALSE(cache_.findings(call).has_value()) << count;
      run(call);
    }
    EXPECT_TRUE(cache_.findings(call).has_value()) << count;
  }
  EXPECT_GT(onlyAny, 0u);
}

// Ranks' plans differ in size, so one may have made room for others where those of its peers have not: what
// has been found out stays.
TEST_F(Kinds, KeepWhatTheyHaveFoundOutWhenTheirPlansMakeRoom) {
  const Call call = callOf(schedule::Collective::AllGather, 8 << 10);
  while (!cache_.findings(call)) run(call);
  const std::string chosen = run(call);
  const std::uint64_t made = cache_.made();
  run(call);
  ASSERT_EQ(cache_.made(), made);
  for (std::uint64_t count = 1; count < 6000; ++count) {
    Call other = callOf(schedule::Collective::AllReduce, count);
    other.algorithm = "mesh";  // tries nothing
    run(other);
  }
  const std::uint64_t before = cache_.made();
  EXPECT_EQ(run(call), chosen);
  EXPECT_EQ(cache_.made(), before + 1) << "its plan made no room";
  EXPECT_EQ(cache_.trial(), nullptr);
}

// All that a job calls: every kind that has forms tries them, in whatever company.
TEST_F(Kinds, EachHasItsOwnPlace) {
  using enum schedule::Collective;
  for (const schedule::Collective collective :
       {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, Gather, Scatter, AllToAll}) {
    for (std::uint64_t count = 2; count <= 16 << 20; count *= 2) {
      const Call call = callOf(collective, count);
      Decision decision;
      ASSERT_TRUE(decide(call, tuning(), &decision).ok());
      const Plan* plan = nullptr;
      ASSERT_TRUE(cache_.find(call, &plan).ok());
      EXPECT_EQ(cache_.trial() != nullptr, !decision.forms.any.empty())
          << nameOf(collective) << " of " << count;
    }
  }
}

// Kinds stay, so there is room for so many: further ones run what the model says.
TEST_F(Kinds, FurtherOnesTryNothing) {
  Call call = callOf(schedule::Collective::AllReduce, 0);
  const auto tries = [&](std::uint64_t octave, std::uint64_t quarter) {
    call.count = (std::uint64_t{4} + quarter) << octave;
    const Plan* plan = nullptr;
    EXPECT_TRUE(cache_.find(call, &plan).ok());
    return cache_.trial() != nullptr;
  };
  std::size_t kinds = 0;
  for (const reduce::RedOp op : {reduce::RedOp::Sum, reduce::RedOp::Max, reduce::RedOp::Min})
    for (const reduce::DType type : {reduce::DType::F32, reduce::DType::I32, reduce::DType::F16,
                                     reduce::DType::BF16, reduce::DType::U32})
      for (std::uint64_t octave = 2; octave < 20; ++octave)
        for (std::uint64_t quarter = 0; quarter < 4; ++quarter, ++kinds) {
          call.op = op;
          call.type = type;
          EXPECT_LE(tries(octave, quarter), kinds < PlanCache::kMostKinds) << kinds;
        }
  EXPECT_GT(kinds, PlanCache::kMostKinds);
  call.op = reduce::RedOp::Sum;
  call.type = reduce::DType::F32;
  EXPECT_TRUE(tries(16, 0)) << "one of the first";
}

TEST_F(Kinds, NothingIsTriedWhereItMayNotBe) {
  Tuning t = tuning();
  const auto forms = [&](Call call) {
    Decision decision;
    EXPECT_TRUE(decide(call, t, &decision).ok());
    return decision.forms.any.size();
  };
  const Call call = callOf(schedule::Collective::AllGather, 8 << 10);
  EXPECT_GE(forms(call), 2u);
  Call forced = call;
  forced.algorithm = "mesh";
  EXPECT_EQ(forms(forced), 0u);
  t.costs.cores = 1;  // for two ranks: roots are calls ahead of the others
  EXPECT_EQ(forms(callOf(schedule::Collective::Broadcast, 8 << 10)), 0u);
  EXPECT_GE(forms(call), 2u);
  t = tuning();
  t.tries = false;  // WEFT_ALGO=model
  EXPECT_EQ(forms(call), 0u);
  t = tuning();
  t.shares = false;  // over a wire
  EXPECT_EQ(forms(call), 0u);
}

// Whether all buffers are shared costs a round to ask, which the model may think too much, or worth it.
TEST_F(Kinds, ToAskAndNotToAskAreForms) {
  const Tuning t = tuning();
  int tried[2] = {};
  for (std::uint64_t count = 2; count <= 1 << 20; count *= 2) {
    const Call call = callOf(schedule::Collective::AllReduce, count);
    Decision decision;
    ASSERT_TRUE(decide(call, t, &decision).ok());
    const bool asks = decision.shared.has_value();
    const auto other = std::ranges::find(decision.forms.any, !asks, &Form::asks);
    EXPECT_TRUE(count > 2 || other == decision.forms.any.end()) << "a round is most of such a call";
    if (other == decision.forms.any.end()) continue;
    ++tried[asks];
    EXPECT_EQ(decision.forms.any.front().asks(), asks);
    EXPECT_EQ(nameOf(*other, call, t).find(" or shared") == std::string::npos, asks);
    Decision made;
    ASSERT_TRUE(decide(call, t, &made, &*other).ok());
    EXPECT_NE(made.shared.has_value(), asks);
  }
  EXPECT_GE(tried[false], 1);
  EXPECT_GE(tried[true], 1);
}

// A root that is calls ahead would stop for it: it asks where the model says so, or not at all.
TEST_F(Kinds, ShortRootedCallsDoNotTryToAsk) {
  const Tuning t = tuning();
  std::size_t tried = 0;
  for (std::uint64_t count = 2; count <= 1 << 13; count *= 2) {
    const Call call = callOf(schedule::Collective::Broadcast, count);
    Decision decision;
    ASSERT_TRUE(decide(call, t, &decision).ok());
    tried += decision.forms.any.size();
    if (count * reduce::sizeOf(call.type) <= transport::kMostRingBytes) {
      EXPECT_EQ(tried, 0u) << "its root is many calls ahead: " << count;
    }
    for (const Form& form : decision.forms.any)
      EXPECT_EQ(form.asks(), decision.shared.has_value()) << count;
  }
  EXPECT_GT(tried, 0u);
}

// While buffers are shared, forms for shared ones try each other, and not to ask.
TEST_F(Kinds, CallsOnSharedBuffersTryTheirOwnForms) {
  const Call call = callOf(schedule::Collective::AllGather, 64 << 10);
  Decision decision;
  ASSERT_TRUE(decide(call, tuning(), &decision).ok());
  ASSERT_TRUE(decision.shared.has_value());
  const auto pulls = [](const Form& form) {
    return form.asks() && form.shared.algorithm->name == "shared-pull";
  };
  ASSERT_TRUE(std::ranges::any_of(decision.forms.shared, pulls));
  ASSERT_FALSE(std::ranges::all_of(decision.forms.shared, &Form::asks));
  // They run what pulls in half of the time of all others.
  const auto runShared = [&] {
    const Plan* plan = nullptr;
    EXPECT_TRUE(cache_.find(call, &plan).ok());
    const bool asks = plan->otherwise != nullptr,
               isQuick = plan->algorithm.find("pull") != std::string::npos;
    Trial* const trial = cache_.trial();
    if (trial != nullptr)
      trial->ran(0, isQuick ? 50 : 100, asks ? std::optional(true) : std::nullopt);
    if (asks) cache_.learn(true);
    if (trial != nullptr && trial->isDue()) cache_.judge(*trial);
    return plan->algorithm;
  };
  runShared();
  while (!cache_.findings(call)) runShared();
  EXPECT_TRUE(pulls(cache_.findings(call)->chosen));
  EXPECT_NE(runShared().find("pull"), std::string::npos);
  // Other buffers have findings of their own.
  const Plan* plan = nullptr;
  ASSERT_TRUE(cache_.find(call, &plan).ok());
  cache_.learn(false);
  EXPECT_FALSE(cache_.findings(call).has_value());
}

// Where all memory is shared, forms for any buffers and for shared ones try each other.
TEST_F(Kinds, WhereAllIsSharedAllFormsAre) {
  Tuning t = tuning();
  t.shares = false;
  t.sharesAll = true;
  const Call call = callOf(schedule::Collective::AllGather, 8 << 10);
  Decision decision;
  ASSERT_TRUE(decide(call, t, &decision).ok());
  int kinds[2] = {};
  for (const Form& form : decision.forms.any) {
    Decision tried;
    ASSERT_TRUE(decide(call, t, &tried, &form).ok());
    ++kinds[tried.shared.has_value()];
    EXPECT_FALSE(form.asks());
    std::unique_ptr<Plan> plan;
    EXPECT_TRUE(bindDecision(tried, call, t, targetOf(t), &plan).ok()) << nameOf(form, call, t);
    EXPECT_FALSE(plan->otherwise);
  }
  EXPECT_GE(kinds[0], 1);
  EXPECT_GE(kinds[1], 1);
}

TEST_F(Kinds, OtherStoresAreAForm) {
  const Tuning t = tuning();
  Call call = callOf(schedule::Collective::AllGather,
                     streamMin(t.ranks, t.costs) / sizeof(float) / (t.ranks + 1) * 2);
  Decision decision;
  ASSERT_TRUE(decide(call, t, &decision).ok());
  const auto flipped = std::ranges::find(decision.forms.any, true, &Form::flipsStores);
  ASSERT_NE(flipped, decision.forms.any.end());
  EXPECT_NE(nameOf(*flipped, call, t).find("other stores"), std::string::npos);
  const auto streams = [&](const Form* form) {
    Decision made;
    EXPECT_TRUE(decide(call, t, &made, form).ok());
    std::unique_ptr<Plan> plan;
    BindTarget target = targetOf(t);
    target.streamMin = streamMin(t.ranks, t.costs);
    EXPECT_TRUE(bindDecision(made, call, t, target, &plan).ok());
    return std::ranges::any_of(plan->ops, &BoundOp::stream);
  };
  EXPECT_NE(streams(nullptr), streams(&*flipped));
}

}  // namespace
}  // namespace weft::plan
