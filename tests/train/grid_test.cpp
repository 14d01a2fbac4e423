// SPDX-License-Identifier: Apache-2.0
// Tensor groups of 1, 2 and 4 ranks, pipelines of 1, 2 and 4 stages and data parallelism, sharded in every way, all that fit 8
// ranks: each learns as one process does. ./dev soak grid runs all (TEST_SWEEPS_ALL), ./dev test one.
#include <algorithm>
#include <cstdlib>

#include "tests/train/reference.h"

namespace weft::train {
namespace {

constexpr int kRanks = 8;      // at most
constexpr int kSequences = 8;  // of a step, whoever learns them

struct Point {
  int tensor, stages, replicas;
  const char* shard;
};

// Those of a family whose serial run is one and the same.
std::vector<Point> pointsOf(int replicas) {
  std::vector<Point> points;
  for (const int tensor : {1, 2, 4})
    for (const int stages : {1, 2, 4})
      for (const char* shard : {"none", "zero1", "zero3", "mics"}) {
        const bool isNothingToShare = replicas == 1 && shard != std::string("none");
        if (tensor * stages * replicas > kRanks || isNothingToShare) continue;
        points.push_back({tensor, stages, replicas, shard});
      }
  return points;
}

// A pipeline gets its sequences one by one, as it has something to do for all stages then.
std::string flagsOf(const Point& point) {
  const int sequences = kSequences / point.replicas;
  const int batches = point.stages > 1 ? sequences : 1;
  return fmt::format("--ranks {} --tensor {} --pipeline {} --batch {} --grad-accum {} --shard {}",
                     point.tensor * point.stages * point.replicas, point.tensor, point.stages,
                     sequences / batches, batches, point.shard);
}

class Grid : public Reference, public testing::WithParamInterface<const char*> {
 protected:
  static std::string family() {
    return fmt::format("--steps 30 --layers 4 --heads 4 --model {} ", GetParam());
  }
};

TEST_P(Grid, LearnsAsOneProcess) {
  if (std::getenv("TEST_SWEEPS_ALL") == nullptr) GTEST_SKIP() << "./dev soak grid";
  for (const int replicas : {1, 2, 4, 8}) {
    const Curve right =
        serial(family() + fmt::format("--ranks {} --batch {}", replicas, kSequences / replicas));
    EXPECT_LT(right.losses.back(), right.losses.front() - 0.5);
    for (const Point& point : pointsOf(replicas)) expectToFollow(right, family() + flagsOf(point));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Grid, testing::Values("gpt", "neox", "bert"));

TEST_F(Reference, AllThreeAtOnceLearnAsOneProcess) {
  const std::string gpt = "--steps 30 --heads 4 ";
  expectToFollow(serial(gpt + "--ranks 2 --batch 4"), gpt + flagsOf({2, 2, 2, "zero3"}));
}

}  // namespace
}  // namespace weft::train
