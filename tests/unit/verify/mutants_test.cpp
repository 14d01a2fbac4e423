// SPDX-License-Identifier: Apache-2.0
// Would the proof notice a slip of the binder's? Mutants of bound plans, of which each is refused
// or shown to do no harm: by a reason that its ops give, and on real bytes.
#include "mutants.h"

#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>

#include "bytes.h"
#include "harmless.h"
#include "jobs.h"

namespace weft::test {
using namespace verify;
namespace {

// Of how many mutants of a kind one is tried.
std::uint32_t every() { return kSlowBuild ? 307 : sweepsAll() ? 3 : 11; }

constexpr std::size_t kMutations = static_cast<std::size_t>(Mutation::kCount);
constexpr std::size_t kReasons = static_cast<std::size_t>(Harmless::kCount);
constexpr const char* kNames[kMutations] = {"drop an op",    "repeat an op",  "exchange two ops",
                                            "no drain",      "finish or not", "no streaming",
                                            "another op",    "peer",          "arrival slot",
                                            "clear-to-send", "source",        "source base",
                                            "target",        "length",        "limit",
                                            "drop operand",  "swap operands", "operand",
                                            "operand base",  "drop spread",   "spread target",
                                            "segment shift", "divisor",       "opening",
                                            "shared bytes",  "drop a writer", "drop a reader",
                                            "ring",          "runs ahead"};
constexpr const char* kWhy[kReasons] = {
    "nothing moves",  "moves more", "neighbours", "addends",      "repeats",     "past the cache",
    "divides by one", "not read",   "any signal", "same content", "not pending", "UNEXPLAINED"};

struct Row {
  std::uint64_t made = 0;
  std::uint64_t mutants = 0, refused = 0;
  std::uint64_t tried = 0, wrong = 0;  // of the refused, on bytes
  std::array<std::uint64_t, kReasons> survivors{};
};
using Table = std::array<Row, kMutations>;

// A form's calls; their plans are the same in place.
struct Subject {
  BoundJob bound;
  bool alsoInPlace = false;

  bool isAccepted() {
    return inBothPlaces([&] { return prove(bound.job).ok(); });
  }
  bool isRightOnBytes() {
    return inBothPlaces([&] { return wrongOnBytes(bound.job).empty(); });
  }
  template <class Check>
  bool inBothPlaces(Check&& check) {
    if (!check()) return false;
    if (!alsoInPlace) return true;
    setInPlace(true);
    const bool ok = check();
    setInPlace(false);
    return ok;
  }
  void setInPlace(bool inPlace) {
    for (PlannedCall& c : bound.job.calls) c.inPlace.assign(c.plans.size(), inPlace);
  }
};

Status makeSubject(const Form& form, const plan::Call& call, Subject* subject) {
  const std::uint64_t chunks = cutsVector(call) ? form.schedule.logicalChunks : 1;
  JobMaker maker(form, call, Placement::Apart);
  if (call.collective == schedule::Collective::Barrier) {
    WEFT_TRY(maker.add(0));
  } else {
    for (const std::uint64_t count : {6 * chunks + 1, 85 * chunks + 7, 13 * chunks})
      WEFT_TRY(maker.add(count));
    if (hasUnevenForm(call)) WEFT_TRY(maker.addUneven(5, true));
  }
  subject->bound = maker.take();
  for (PlannedCall& c : subject->bound.job.calls) c.withoutUnusedBuffer = false;
  subject->alsoInPlace = schedule::allowsInPlace(call.collective);
  return {};
}

void mutate(const Form& form, const plan::Call& call, Table* table) {
  Subject subject;
  const Status made = makeSubject(form, call, &subject);
  ASSERT_TRUE(made.ok()) << made.text();
  ASSERT_TRUE(subject.isAccepted())
      << form.schedule.name << ": " << prove(subject.bound.job).text();
  ASSERT_TRUE(subject.isRightOnBytes());
  for (std::size_t p = 0; p < subject.bound.plans.size(); ++p) {
    plan::Plan* const plan = subject.bound.plans[p].get();
    const plan::Plan& before = *plan;
    const std::vector<plan::BoundOp> ops = before.ops;
    Mutator(plan, form.schedule.ranks, [&](const Mutant& m) {
      Row& row = (*table)[static_cast<std::size_t>(m.mutation)];
      if (row.made++ % every() != 0) return;
      ++row.mutants;
      if (!subject.isAccepted()) {
        if (row.refused++ % every() == 0) ++row.tried, row.wrong += !subject.isRightOnBytes();
        return;
      }
      Harmless why = Explainer(m, *plan, ops, call.collective, form.order).why();
      if (!subject.isRightOnBytes()) why = Harmless::Unexplained;
      ++row.survivors[static_cast<std::size_t>(why)];
      EXPECT_NE(why, Harmless::Unexplained)
          << form.schedule.name << ", " << form.schedule.ranks << " ranks, "
          << reduce::name(call.op) << ": " << kNames[static_cast<std::size_t>(m.mutation)]
          << " (operand " << m.operand << ") is accepted in call " << p / form.schedule.ranks
          << ", rank " << p % form.schedule.ranks << ", op " << m.op << " of kind "
          << static_cast<int>(m.before.kind) << ", bases " << static_cast<int>(m.before.src.base)
          << " and " << static_cast<int>(m.before.dst.base) << ", max " << m.before.max
          << ", limit " << m.before.limit;
    }).run();
  }
}

// Returns the sum of all rows.
Row print(const Table& table) {
  std::printf("%-18s %7s %7s %18s | survivors:", "mutation", "mutants", "refused",
              "wrong on bytes");
  for (const char* why : kWhy) std::printf(" %s,", why);
  std::printf("\n");
  Row total;
  for (std::size_t i = 0; i < kMutations; ++i) {
    const Row& row = table[i];
    std::printf("%-18s %7" PRIu64 " %7" PRIu64 " %9" PRIu64 " of %5" PRIu64 " |", kNames[i],
                row.mutants, row.refused, row.wrong, row.tried);
    for (const std::uint64_t n : row.survivors) std::printf(" %6" PRIu64, n);
    std::printf("\n");
    total.mutants += row.mutants, total.refused += row.refused;
    total.tried += row.tried, total.wrong += row.wrong;
  }
  std::printf("%-18s %7" PRIu64 " %7" PRIu64 " %9" PRIu64 " of %5" PRIu64 "\n", "all",
              total.mutants, total.refused, total.wrong, total.tried);
  return total;
}

TEST(Prove, NoticesSlipsOfTheBinder) {
  Table table;
  for (const schedule::Algorithm& a : schedule::algorithms())
    for (const reduce::RedOp op : opsOf(a.collective)) {
      const schedule::Shape shape =
          a.levels == schedule::Levels::One
              ? schedule::Shape{.ranks = 3}
              : schedule::Shape{.ranks = 4, .localRanks = 2, .nodeOf = schedule::Nodes::even(2, 2)};
      plan::Call call = plan::callOf(a.collective, 0);
      call.op = op;
      call.root = schedule::isRooted(a.collective) ? 1 : 0;
      for (const Form& form : formsOf(a, call, shape)) mutate(form, call, &table);
    }
  const Row total = print(table);
  for (std::size_t i = 0; i < kMutations; ++i) EXPECT_GT(table[i].mutants, 0u) << kNames[i];
  EXPECT_GT(total.wrong, total.tried / 2) << "bytes show what slips do";
}

}  // namespace
}  // namespace weft::test
