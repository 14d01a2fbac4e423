// SPDX-License-Identifier: Apache-2.0
// The proof of every bound plan.
#include "tests/verify/prove.h"

#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <ctime>

#include "jobs.h"

namespace weft::test {
using namespace verify;
namespace {

std::vector<std::uint32_t> rootsOf(schedule::Collective c, std::uint32_t ranks) {
  std::vector<std::uint32_t> roots{ranks / 2};
  if (!schedule::isRooted(c)) return roots;
  for (std::uint32_t r = 0; r < ranks && ranks <= 4; ++r)
    if (r != ranks / 2) roots.push_back(r);
  return roots;
}

std::vector<std::vector<std::uint32_t>> unevenNodes() {
  return {{0, 0, 1},
          {0, 1, 1},
          {0, 1, 0, 1},
          {0, 1, 2, 0, 1, 2},
          {0, 1, 1, 1, 2, 2},
          {0, 0, 0, 0, 1, 1, 1, 2},
          {2, 0, 1, 1, 2, 2, 0, 1, 1}};
}

schedule::Shape evenShape(std::uint32_t localRanks, std::uint32_t nodes) {
  return {.ranks = localRanks * nodes,
          .localRanks = localRanks,
          .nodeOf = schedule::Nodes::even(localRanks, nodes)};
}

// All of at most `most` ranks.
std::vector<schedule::Shape> shapesOf(const schedule::Algorithm& a, std::uint32_t most) {
  std::vector<schedule::Shape> shapes;
  if (a.levels == schedule::Levels::One)
    for (std::uint32_t n = 1; n <= most; ++n) {
      if (isSwept(n)) shapes.push_back({.ranks = n});
    }
  else
    for (std::uint32_t localRanks = 2; localRanks <= most / 2; ++localRanks)
      for (std::uint32_t nodes = 2; localRanks * nodes <= most; ++nodes)
        shapes.push_back(evenShape(localRanks, nodes));
  for (const std::vector<std::uint32_t>& nodeOf : unevenNodes())
    if (a.levels == schedule::Levels::Two && nodeOf.size() <= most)
      shapes.push_back({.ranks = static_cast<std::uint32_t>(nodeOf.size()), .nodeOf = nodeOf});
  return shapes;
}

std::vector<Placement> placementsOf(schedule::Collective c) {
  if (!schedule::allowsInPlace(c)) return {Placement::Apart};
  return {Placement::Apart, Placement::InPlace, Placement::OddRanksInPlace};
}

double cpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void proveAll(const schedule::Algorithm& a, plan::Call call, const schedule::Shape& shape,
              ProofCount* count) {
  for (const std::uint32_t root : rootsOf(call.collective, shape.ranks)) {
    call.root = static_cast<int>(root);
    for (const Form& form : formsOf(a, call, shape)) {
      for (const Placement placement : placementsOf(call.collective)) {
        BoundJob bound;
        const Status made = makeJob(form, call, placement, &bound);
        ASSERT_TRUE(made.ok()) << made.text();
        const Status status = prove(bound.job, count);
        ASSERT_TRUE(status.ok()) << status.text() << ", op " << reduce::name(call.op)
                                 << ", placement " << static_cast<int>(placement);
      }
    }
  }
}

void proveAlgorithm(const schedule::Algorithm& a, const std::vector<schedule::Shape>& shapes,
                    ProofCount* total) {
  ProofCount count;
  const double start = cpuSeconds();
  std::vector<std::pair<schedule::Collective, reduce::RedOp>> calls;
  for (const reduce::RedOp op : opsOf(a.collective)) calls.push_back({a.collective, op});
  // A step, named by its reduce-scatter.
  if (a.collective == schedule::Collective::ReduceScatter)
    calls.push_back({schedule::Collective::AllReduce, reduce::RedOp::Epilogue});
  for (const auto& [collective, op] : calls) {
    plan::Call call = plan::callOf(collective, 0);
    call.op = op;
    for (const schedule::Shape& shape : shapes) proveAll(a, call, shape, &count);
  }
  std::printf("%-14s %-20s %6" PRIu64 " %9.2f %7.2f\n", schedule::nameOf(a.collective),
              std::string(a.name).c_str(), count.proofs, static_cast<double>(count.ops) / 1e6,
              cpuSeconds() - start);
  std::fflush(stdout);
  EXPECT_GT(count.proofs, 0u) << a.name;
  total->proofs += count.proofs;
  total->ops += count.ops;
}

TEST(Prove, EveryFormOfEveryAlgorithm) {
  ProofCount total;
  std::printf("%-14s %-20s %6s %9s %7s\n", "collective", "algorithm", "proofs", "Mops", "CPU s");
  for (const schedule::Algorithm& a : schedule::algorithms())
    proveAlgorithm(a, shapesOf(a, kSlowBuild ? 4 : sweepsAll() ? 16 : 12), &total);
  std::printf("%" PRIu64 " proofs, %" PRIu64 " ops\n", total.proofs, total.ops);
}

// Chosen shapes, protocol slots of several lines, fewer lanes. Of the largest, one form of every
// fifth algorithm, or of every second: the clocks of a proof are ranks^2 words.
TEST(Prove, SamplesToSixtyFourRanks) {
  ProofCount count;
  const double start = cpuSeconds();
  std::size_t number = 0;
  for (const schedule::Algorithm& a : schedule::algorithms()) {
    const bool large = number++ % (sweepsAll() ? 2 : 5) == 0;
    std::vector<schedule::Shape> shapes{{.ranks = kSlowBuild ? 11u : 23u},
                                        {.ranks = large ? 64u : 33u}};
    if (a.levels != schedule::Levels::One)
      shapes = {evenShape(3, 7), large ? evenShape(8, 8) : evenShape(4, 8)};
    if (kSlowBuild) shapes = {shapes[0]};
    for (const schedule::Shape& shape : shapes) {
      plan::Call call = plan::callOf(a.collective, 0);
      call.op = a.shared ? reduce::RedOp::Sum : opsOf(a.collective).back();
      call.root = schedule::isRooted(a.collective) ? static_cast<int>(shape.ranks / 3) : 0;
      std::vector<Form> forms = formsOf(a, call, shape);
      if (shape.ranks > 32) forms.erase(forms.begin() + 1, forms.end());
      for (const Form& form : forms) {
        JobMaker maker(form, call, Placement::InPlace, /*roomy=*/true);
        for (const std::uint64_t n : {2u, 97u, 8u * 16 * shape.ranks + 5})
          ASSERT_TRUE(maker.add(a.collective == schedule::Collective::Barrier ? 0 : n).ok());
        BoundJob bound = maker.take();
        bound.job.lanes = 2;
        const Status status = prove(bound.job, &count);
        ASSERT_TRUE(status.ok()) << status.text();
      }
    }
  }
  std::printf("%" PRIu64 " proofs, %" PRIu64 " ops, %.2f CPU s\n", count.proofs, count.ops,
              cpuSeconds() - start);
}

// Ranks whose buffers are not shared leave after their signals, the others when they have heard of
// it; then all run the other plan, in the same arrival slots.
TEST(Prove, RefusedPlansAndWhatRunsInstead) {
  ProofCount count;
  for (const schedule::Algorithm& a : schedule::algorithms()) {
    if (!a.shared) continue;
    for (std::uint32_t n = 2; n <= 8; ++n) {
      const plan::Call call = plan::callOf(a.collective, 0);
      const Form shared = formsOf(a, call, {.ranks = n}).front();
      const schedule::Algorithm& other =
          *std::ranges::find_if(schedule::algorithms(), [&](const schedule::Algorithm& o) {
            return o.collective == a.collective && o.levels == schedule::Levels::One;
          });
      for (const Form& otherwise : formsOf(other, call, {.ranks = n}))
        for (std::uint32_t who = 0; who <= n; ++who) {
          std::vector<bool> unwilling(n, who == n);
          if (who < n) unwilling[who] = true;
          JobMaker maker(otherwise, call, Placement::InPlace);
          for (int i = 0; i < 4; ++i) {
            maker.becomes(shared);
            ASSERT_TRUE(maker.add(30).ok());
            if (i == 2) continue;  // for once all are willing
            maker.refuse(unwilling);
            maker.becomes(otherwise);
            ASSERT_TRUE(maker.add(30).ok());
          }
          const BoundJob bound = maker.take();
          const Status status = prove(bound.job, &count);
          ASSERT_TRUE(status.ok()) << status.text();
        }
    }
  }
  EXPECT_GT(count.proofs, 100u);
}

// Scaled inputs lie in own protocol memory, which no peer's credit guards.
TEST(Prove, RefusesMoreLanesThanFit) {
  const schedule::Algorithm& ring =
      *schedule::findAlgorithm(schedule::Collective::AllReduce, "ring");
  plan::Call call = plan::callOf(schedule::Collective::AllReduce, 0);
  call.op = reduce::RedOp::PreMulSum;
  const Form form = formsOf(ring, call, {.ranks = 3}).front();
  JobMaker maker(form, call, Placement::Apart);
  ASSERT_TRUE(maker.add(1000).ok());
  BoundJob bound = maker.take();
  EXPECT_TRUE(prove(bound.job).ok());
  bound.job.lanes = transport::kMaxLanes + 1;
  EXPECT_NE(prove(bound.job).text().find("races"), std::string::npos) << prove(bound.job).text();
}

// The slots of a later segment are those of an earlier one, which its receiver may not have read. An
// all-reduce of two phases needs no credit: what comes back says that all has been read.
TEST(Prove, RefusesPutsWithoutCredit) {
  std::size_t refused = 0;
  for (const schedule::Algorithm& a : schedule::algorithms()) {
    if (a.collective == schedule::Collective::AllReduce && a.name != "one-shot") continue;
    const schedule::Shape shape =
        a.levels == schedule::Levels::One ? schedule::Shape{.ranks = 4} : evenShape(2, 2);
    const plan::Call call = plan::callOf(a.collective, 0);
    for (const Form& form : formsOf(a, call, shape)) {
      JobMaker maker(form, call, Placement::Apart);
      ASSERT_TRUE(maker.add(1000).ok());
      BoundJob bound = maker.take();
      if (bound.plans[0]->segments <= transport::kMaxLanes) continue;
      EXPECT_TRUE(prove(bound.job).ok()) << prove(bound.job).text();
      ++refused;
      bound.job.credits = false;
      EXPECT_NE(prove(bound.job).text().find("races"), std::string::npos) << form.schedule.name;
    }
  }
  EXPECT_GT(refused, 20u);
}

// Where data flows one way, nothing but the credit keeps a rank from running ahead by more than its
// ring holds: of messages in arrival slots, of longer ones, of still longer ones, of segments of such,
// and in turn.
class ProveRings : public ::testing::TestWithParam<std::array<std::uint64_t, 2>> {
 protected:
  // Each form of a rooted call whose plan is in a ring and whose data flow one way.
  template <class Check>
  void forEach(Check&& check) {
    for (const schedule::Algorithm& a : schedule::algorithms()) {
      if (!schedule::isRooted(a.collective) || a.levels != schedule::Levels::One) continue;
      const plan::Call call = plan::callOf(a.collective, 0);
      for (const Form& form : formsOf(a, call, {.ranks = 4})) {
        // A clear-to-send comes before each put into Out.
        if (form.schedule.name.ends_with("+direct") && !schedule::isReduction(a.collective))
          continue;
        JobMaker maker(form, call, Placement::Apart, true);
        for (std::size_t i = 0; i < 6; ++i) ASSERT_TRUE(maker.add(GetParam()[i % 2]).ok());
        BoundJob bound = maker.take();
        if (!bound.plans[0]->inRing) continue;
        ASSERT_TRUE(prove(bound.job).ok()) << prove(bound.job).text();
        check(bound, form.schedule.name);
        ++rings_;
      }
    }
  }

  int rings_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Elements, ProveRings,
                         ::testing::Values(std::array<std::uint64_t, 2>{3, 3},
                                           std::array<std::uint64_t, 2>{16, 64},
                                           std::array<std::uint64_t, 2>{100, 100},
                                           std::array<std::uint64_t, 2>{300, 300},
                                           std::array<std::uint64_t, 2>{16, 100}));

TEST_P(ProveRings, AreRefusedWithoutCredit) {
  forEach([](BoundJob& bound, const std::string& name) {
    bound.job.credits = false;
    EXPECT_NE(prove(bound.job).text().find("races"), std::string::npos) << name;
  });
  EXPECT_GE(rings_, 4);
}

TEST_P(ProveRings, AreRefusedWhereTheyAreTakenForLonger) {
  forEach([](BoundJob& bound, const std::string& name) {
    for (const auto& plan : bound.plans) ++plan->depth;
    EXPECT_NE(prove(bound.job).text().find("races"), std::string::npos) << name;
  });
  EXPECT_GE(rings_, 4);
}

}  // namespace
}  // namespace weft::test
