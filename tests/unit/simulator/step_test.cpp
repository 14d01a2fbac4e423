// SPDX-License-Identifier: Apache-2.0
// Training steps whose times are computed by hand, and the phases that they are made of.
#include <gtest/gtest.h>

#include <algorithm>

#include "../sim/fabric_job.h"
#include "shard/layout.h"
#include "shard/step_outcome.h"
#include "tools/sim/step/phases.h"
#include "tools/sim/step/predict_step.h"
#include "tools/sim/step/published.h"

namespace weft::simulator {
namespace {

using shard::Degrees;

constexpr double kHopNs = 3000, kBytesPerNs = 10;
constexpr std::uint64_t kElements = 8192;  // of a parameter: a bucket of its own

// Layers of one parameter each.
StepModel modelOf(const std::vector<std::pair<double, double>>& forwardAndBackward) {
  StepModel model;
  for (const auto& [forward, backward] : forwardAndBackward) {
    const std::string name = "layer" + std::to_string(model.layers.size());
    model.layers.push_back({name, model.parameters.size(), 1, forward, backward, 0});
    model.parameters.push_back({.name = name, .elements = kElements});
  }
  return model;
}

StepSettings settingsOf(const Degrees& degrees) {
  StepSettings settings;
  settings.degrees = degrees;
  settings.bucketElements = kElements;
  return settings;
}

StepRow rowOf(const StepModel& model, const StepSettings& settings, std::uint32_t ranks) {
  Cluster cluster;
  cluster.network =
      sim::networkOf("nodes 1 ranks " + std::to_string(ranks) + "\nmesh all gbit 80 us 3\n");
  cluster.machine = sim::idealMachine();
  Place place;
  place.messageNs = 0;
  StepRun run;
  run.algorithm = "mesh";
  StepRow row;
  const Status done = predictStep(place, cluster, model, settings, run, &row);
  EXPECT_TRUE(done.ok()) << done.text();
  return row;
}

// Of one hop on a mesh, where each rank sends so many bytes to each other one.
double hop(double bytes) { return kHopNs + bytes / kBytesPerNs; }
double normNs() { return hop(sizeof(shard::StepReport)); }

TEST(Step, WithoutOverlapAllIsExposed) {
  StepSettings settings = settingsOf({1, 1, 2});
  settings.overlaps = false;
  const StepRow row = rowOf(modelOf({{5000, 9000}, {4000, 8000}}), settings, 2);
  EXPECT_EQ(row.buckets, 2u);
  const double block = 4.0 * kElements / 2;
  EXPECT_NEAR(row.computeNs, 26000, 0.01);
  EXPECT_NEAR(row.exposedNs(), 4 * hop(block) + normNs(), 0.01);
  EXPECT_NEAR(row.stepNs, row.computeNs + row.exposedNs(), 0.01);
}

TEST(Step, OneBucketCannotBeHidden) {
  const StepRow row = rowOf(modelOf({{5000, 9000}}), settingsOf({1, 1, 2}), 2);
  EXPECT_NEAR(row.stepNs, 14000 + 2 * hop(2.0 * kElements) + normNs(), 0.01);
}

// The first bucket is reduced under the backward, and gathered under the forward, of the first layer.
TEST(Step, LongPassesHideAllBucketsButOne) {
  const double block = 4.0 * kElements / 2;
  const StepRow row = rowOf(modelOf({{90000, 90000}, {4000, 8000}}), settingsOf({1, 1, 2}), 2);
  EXPECT_NEAR(row.exposedNs(), 2 * hop(block) + normNs(), 0.01);
}

// Communication that takes longer than all of backward: its time alone counts from the first bucket.
TEST(Step, ShortPassesHideTheirOwnTime) {
  const double block = 4.0 * kElements / 2, passes = 100 + 100 + 200 + 200;
  const StepRow row = rowOf(modelOf({{100, 200}, {100, 200}}), settingsOf({1, 1, 2}), 2);
  // Under them ran the backward of the first layer, and its forward, which needed no other bucket.
  EXPECT_NEAR(row.stepNs, passes - 200 - 100 + 4 * hop(block) + normNs(), 0.01);
}

TEST(Step, ReplicasAddUp) {
  const StepRow row = rowOf(modelOf({{5000, 9000}}), settingsOf({1, 1, 1}), 4);
  EXPECT_NEAR(row.stepNs, 14000 + 2 * hop(4.0 * kElements / 4) + normNs(), 0.01);
  EXPECT_NEAR(row.sentBytes, 2 * 3.0 / 4 * 4 * kElements, 0.01);
}

TEST(Step, WholeGradientsTravelOnce) {
  StepSettings settings = settingsOf({1, 1, 2});
  settings.accumulate = 3;
  const StepRow row = rowOf(modelOf({{5000, 9000}}), settings, 2);
  EXPECT_NEAR(row.stepNs, 3 * 14000 + 2 * hop(2.0 * kElements) + normNs(), 0.01);
}

// Those of a micro-step that is not the last travel under the forward of the next one.
TEST(Step, ShardedGradientsTravelInEachMicroStep) {
  StepSettings settings = settingsOf({1, 2, 2});
  settings.accumulate = 3;
  const StepRow row = rowOf(modelOf({{50000, 9000}}), settings, 2);
  EXPECT_NEAR(row.stepNs, 3 * 59000 + 2 * hop(2.0 * kElements) + normNs(), 0.01);
  EXPECT_NEAR(row.sentBytes, 4 * 2.0 * kElements, 0.01);
}

// Parameters are gathered before forward, and there is nothing to hide that under; those of the last
// layer stay for backward.
TEST(Step, ShardedParametersOfOneLayerComeOnce) {
  const StepRow row = rowOf(modelOf({{50000, 9000}}), settingsOf({2, 2, 2}), 2);
  EXPECT_NEAR(row.stepNs, 59000 + 2 * hop(2.0 * kElements) + normNs(), 0.01);
}

TEST(Step, TheNextLayerIsGatheredUnderThisOne) {
  const StepRow row = rowOf(modelOf({{50000, 90000}, {50000, 90000}}), settingsOf({2, 2, 2}), 2);
  // The first of forward, and the reduction and the norm that come after the last gradient.
  EXPECT_NEAR(row.exposedNs(), 2 * hop(2.0 * kElements) + normNs(), 0.01);
  // Both layers in forward, the first in backward, and the gradients of both.
  EXPECT_NEAR(row.sentBytes, 5 * 2.0 * kElements, 0.01);
}

// What is sharded has new memory for each copy of parameters, and for the gradients of each pass.
TEST(Step, MemoryOfWhatIsShardedComesAndGoes) {
  const double bytes = 4.0 * kElements;
  const StepModel model = modelOf({{50000, 9000}});
  StepSettings settings = settingsOf({2, 2, 2});
  settings.pages = {.giveBackNsPerByte = 0.01, .touchNsPerByte = 0.1};
  const StepRow row = rowOf(model, settings, 2);
  // Parameters before forward, gradients in backward, which go before the norm; parameters go under the
  // reduction.
  EXPECT_NEAR(row.stepNs,
              59000 + 2 * 0.1 * bytes + 0.01 * bytes + 2 * hop(2.0 * kElements) + normNs(), 0.01);
  settings.degrees = {1, 2, 2};
  EXPECT_NEAR(rowOf(model, settings, 2).stepNs,
              59000 + 0.1 * bytes + 0.01 * bytes + 2 * hop(2.0 * kElements) + normNs(), 0.01);
  settings.degrees = {1, 1, 2};
  EXPECT_NEAR(rowOf(model, settings, 2).stepNs, 59000 + 2 * hop(2.0 * kElements) + normNs(), 0.01);
}

TEST(Step, MemoryOfThisHostTakesTime) {
  const PageCosts pages = measurePages();
  EXPECT_GT(pages.touchNsPerByte, 0);
  EXPECT_GT(pages.giveBackNsPerByte, 0);
}

TEST(Step, TensorGroupsAddUpInBothPasses) {
  StepModel model = modelOf({{5000, 9000}});
  model.layers[0].tensorBytes = 32768;
  StepSettings settings = settingsOf({1, 1, 1});
  settings.tensor = 4;
  const StepRow row = rowOf(model, settings, 4);
  EXPECT_NEAR(row.tensorNs, 2 * 2 * hop(32768 / 4), 0.01);
  EXPECT_NEAR(row.stepNs, 14000 + row.tensorNs, 0.01);
}

TEST(Step, OwnedElementsAreUpdated) {
  StepModel model = modelOf({{5000, 9000}});
  model.updateNsPerElement = 2;
  const StepRow row = rowOf(model, settingsOf({1, 1, 2}), 2);
  EXPECT_NEAR(row.exposedNs(), 2 * hop(2.0 * kElements) + normNs() + kElements, 0.01);
}

// What ranks reduce is what lib/shard has cut, for any parameters.
TEST(Step, BucketsAreThoseOfTheLayout) {
  for (const char* name : {"gpt", "bert", "neox", "bert-large"}) {
    for (const std::uint64_t bucket :
         {std::uint64_t{1}, std::uint64_t{50000}, std::uint64_t{4} << 20}) {
      const StepModel model = publishedModel(name, {1e6});
      StepSettings settings = settingsOf({1, 1, 8});
      settings.bucketElements = bucket;
      StepPhases phases;
      ASSERT_TRUE(makePhases(model, settings, 8, 1, &phases).ok());
      shard::Layout layout;
      ASSERT_TRUE(shard::Layout::make(model.parameters, bucket, 8, &layout).ok());
      std::vector<std::uint64_t> cut, reduced;
      for (const shard::Layout::Bucket& b : layout.buckets()) cut.push_back(b.elements);
      for (const sim::Phase& phase : phases.phases) {
        if (phase.call == sim::Phase::kComputes) continue;
        const plan::Call& call = phases.calls[phase.call].call;
        if (call.collective == schedule::Collective::ReduceScatter)
          reduced.push_back(call.count * 8);
      }
      EXPECT_EQ(reduced, cut) << name << " " << bucket;
    }
  }
}

// The time of a published model is spread over its layers.
TEST(Step, PublishedModelsTakeTheirTime) {
  const StepModel model = publishedModel("bert-1.5b", {3e6, 0.25});
  EXPECT_EQ(model.elements(), 1530379324u);
  EXPECT_NEAR(model.forwardNs(), 0.75e6, 1);
  EXPECT_NEAR(model.backwardNs(), 2.25e6, 1);
  EXPECT_EQ(model.layers.size(), 50u);
  EXPECT_EQ(model.layers[0].forwardNs, 0);
}

TEST(Step, DegreesAndTensorGroupsDivideTheRanks) {
  StepPhases phases;
  StepSettings settings = settingsOf({1, 1, 3});
  Status made = makePhases(modelOf({{1, 1}}), settings, 4, 1, &phases);
  EXPECT_NE(made.text().find("degrees {1, 1, 3} on 4 ranks"), std::string::npos) << made.text();
  settings.tensor = 3;
  made = makePhases(modelOf({{1, 1}}), settings, 4, 1, &phases);
  EXPECT_NE(made.text().find("tensor groups of 3 do not divide 4 ranks"), std::string::npos);
}

}  // namespace
}  // namespace weft::simulator
