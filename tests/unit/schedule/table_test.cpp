// SPDX-License-Identifier: Apache-2.0
// The proof of every algorithm over its shapes and forms, and of the verifier by mutants, as one
// printed table.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <random>

#include "harmless.h"

namespace weft::test {
using namespace schedule;
namespace {

constexpr uint32_t kMaxRanks = kSlowBuild ? 6 : 64;  // flat algorithms
constexpr uint32_t kMaxSideAllForms = kSlowBuild ? 3 : 5;
// Two-level ones: local ranks and nodes.
uint32_t mostSide() { return kSlowBuild ? 3 : sweepsAll() ? 16 : 12; }

double cpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// All roots of small groups, the first, a middle and the last one of large groups.
std::vector<uint32_t> rootsOf(Collective c, uint32_t ranks) {
  if (!isRooted(c)) return {0};
  std::vector<uint32_t> roots{0, ranks / 2, ranks - 1};
  if (ranks <= 9)
    for (uint32_t r = 0; r < ranks; ++r) roots.push_back(r);
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  return roots;
}

// Nodes of different sizes, and ranks that do not stand in order.
std::vector<std::vector<uint32_t>> unevenNodes() {
  return {{0, 0, 1},
          {0, 1, 1},
          {0, 1, 0, 1},
          {0, 1, 2, 0, 1, 2},
          {0, 1, 1, 1, 2, 2},
          {0, 0, 0, 0, 1, 1, 1, 2},
          {0, 0, 0, 1, 1, 1, 1, 1, 2, 3, 3},
          {2, 0, 1, 1, 2, 2, 0, 1, 1}};
}

std::vector<Shape> shapesOf(const Algorithm& a) {
  std::vector<Shape> shapes;
  const auto add = [&](uint32_t ranks, uint32_t localRanks) {
    if (!isSwept(localRanks) || !isSwept(ranks / localRanks)) return;
    for (uint32_t root : rootsOf(a.collective, ranks)) shapes.push_back({ranks, root, localRanks});
  };
  if (a.levels == Levels::One)
    for (uint32_t n = 1; n <= kMaxRanks; ++n) add(n, 1);
  else if (a.levels == Levels::Links)
    for (uint32_t n = 1; n <= mostSide(); ++n) add(n, 1);
  else
    for (uint32_t localRanks = 1; localRanks <= mostSide(); ++localRanks)
      for (uint32_t nodes = 1; nodes <= mostSide(); ++nodes) add(localRanks * nodes, localRanks);
  if (a.levels == Levels::Two)
    for (const std::vector<uint32_t>& nodeOf : unevenNodes())
      for (uint32_t root : rootsOf(a.collective, static_cast<uint32_t>(nodeOf.size())))
        shapes.push_back({static_cast<uint32_t>(nodeOf.size()), root, 1, nodeOf});
  return shapes;
}

// Large two-level shapes in the basic forms, all others in every form.
std::vector<Form> formsOf(const Algorithm& a, const Shape& shape) {
  const uint32_t side = std::max(shape.localRanks, shape.ranks / shape.localRanks);
  if (a.levels == Levels::One || a.levels == Levels::Links || side <= kMaxSideAllForms)
    return allForms(a, shape);
  return {plain(a, shape)};
}

struct Row {
  uint64_t shapes = 0, proofs = 0, failed = 0;
  verify::VerifyCount count;
  double seconds = 0;
  uint64_t mutants = 0, rejected = 0;
  std::array<uint64_t, 5> survivors{};  // by Harmless

  void add(const Row& r) {
    shapes += r.shapes, proofs += r.proofs, failed += r.failed;
    count.ops += r.count.ops, seconds += r.seconds;
    mutants += r.mutants, rejected += r.rejected;
    for (size_t i = 0; i < survivors.size(); ++i) survivors[i] += r.survivors[i];
  }
};

void prove(const Algorithm& a, Row& row) {
  const double start = cpuSeconds();
  for (const Shape& shape : shapesOf(a)) {
    ++row.shapes;
    for (const Form& form : formsOf(a, shape)) {
      const Status status = verify::verify(form.schedule, form.options, &row.count);
      ++row.proofs;
      row.failed += !status.ok();
      ASSERT_TRUE(status.ok()) << status.text();
    }
  }
  row.seconds = cpuSeconds() - start;
}

std::vector<Form> mutatedForms(const Algorithm& a) {
  std::vector<Shape> shapes;
  if (a.levels != Levels::One)
    shapes = {{4, 1, 2}, {6, 1, 3}, {6, 4, 2}};
  else
    shapes = {{2, 1}, {3, 0}, {4, 3}, {5, 1}, {7, 2}};
  if (kSlowBuild) shapes.resize(a.levels == Levels::One ? 2 : 1);
  std::vector<Form> forms;
  for (const Shape& shape : shapes) {
    forms.push_back(plain(a, shape));
    if (a.collective == Collective::Barrier || a.shared) continue;
    forms.push_back(direct(a, shape));
    if (shape.ranks > 4) continue;
    forms.push_back(staged(a, shape));
    if (isReduction(a.collective)) forms.push_back(scaled(a, shape));
  }
  return forms;
}

void mutate(const Algorithm& a, const Form& form, Row& row) {
  Mutator(form.schedule, [&](const Mutant& m) {
    ++row.mutants;
    const Schedule s = m.of(form.schedule);
    if (!verify::verify(s, form.options).ok()) {
      ++row.rejected;
      return;
    }
    Harmless why = explain(m, a.order, a.collective);
    if (!rightOnBytes(s)) why = Harmless::Unexplained;
    ++row.survivors[static_cast<size_t>(why)];
    EXPECT_NE(why, Harmless::Unexplained)
        << s.name << ", " << s.ranks << " ranks: mutation " << static_cast<int>(m.mutation)
        << " of rank " << m.rank << ", op " << m.op << " is accepted";
  }).run();
}

void print(const char* collective, const std::string& name, const Row& r) {
  std::printf("%-14s %-20s %6" PRIu64 " %6" PRIu64 " %5" PRIu64 " %8.2f %6.2f | %7" PRIu64
              " %8" PRIu64 " %8" PRIu64 " %7" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64 "\n",
              collective, name.c_str(), r.shapes, r.proofs, r.failed,
              static_cast<double>(r.count.ops) / 1e6, r.seconds, r.mutants, r.rejected,
              r.survivors[0], r.survivors[1], r.survivors[2], r.survivors[3], r.survivors[4]);
  std::fflush(stdout);
}

TEST(Schedule, Table) {
  std::printf(
      "Flat algorithms for 1..%u ranks, staged, direct, prescaled. Two-level ones\n"
      "for all local ranks x nodes to %u x %u, all forms to %u x %u. CPU seconds are the "
      "verifier's\n"
      "own. Survivors are the mutants that it accepts, each shown to be harmless.\n\n",
      kMaxRanks, mostSide(), mostSide(), kMaxSideAllForms, kMaxSideAllForms);
  std::printf("%-14s %-20s %6s %6s %5s %8s %6s | %7s %8s | survivors: exchanged\n", "", "", "", "",
              "", "million", "CPU", "", "");
  std::printf("%-14s %-20s %6s %6s %5s %8s %6s | %7s %8s %8s %7s %6s %6s %6s\n", "collective",
              "algorithm", "shapes", "proofs", "fail", "ops", "s", "mutants", "rejected", "ops",
              "addends", "equal", "later", "other");
  Row total;
  for (const Algorithm& a : algorithms()) {
    Row row;
    prove(a, row);
    for (const Form& form : mutatedForms(a)) mutate(a, form, row);
    print(nameOf(a.collective), std::string(a.name), row);
    total.add(row);
    EXPECT_GT(row.rejected, row.mutants / 2);
  }
  print("all", "", total);
  std::printf("%.2f million ops/s on one core\n",
              static_cast<double>(total.count.ops) / 1e6 / total.seconds);
}

// Results and deadlock alone, without the race proof, for shapes that no test host has.
TEST(Schedule, TwoLevelToThousandsOfRanks) {
  std::vector<Shape> shapes{{4096, 0, 8}, {4096, 0, 64}};
  std::mt19937 random(7);
  for (int i = 0; i < (sweepsAll() ? 6 : 3); ++i) {
    const auto localRanks = static_cast<uint32_t>(1 + random() % 16);
    const auto nodes = static_cast<uint32_t>(1 + random() % (1024 / localRanks));
    shapes.push_back({localRanks * nodes, 0, localRanks});
  }
  if (kSlowBuild) shapes = {{96, 0, 8}, {143, 0, 11}};
  for (const Shape& shape : shapes)
    for (const char* name : {"two-level", "two-level-circulant"}) {
      const Algorithm& a = *findAlgorithm(Collective::AllReduce, name);
      verify::VerifyCount count;
      const double start = cpuSeconds();
      const Status status = verify::verify(a.make(shape), {.hazards = false}, &count);
      const double seconds = cpuSeconds() - start;
      ASSERT_TRUE(status.ok()) << status.text();
      std::printf("%4u ranks (%2u local ranks x %3u nodes) %-19s %8" PRIu64
                  " ops %6.2f s %6.2f M ops/s\n",
                  shape.ranks, shape.localRanks, shape.ranks / shape.localRanks, name, count.ops,
                  seconds, static_cast<double>(count.ops) / 1e6 / seconds);
      std::fflush(stdout);
    }
}

}  // namespace
}  // namespace weft::test
