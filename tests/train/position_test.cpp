// SPDX-License-Identifier: Apache-2.0
#include "tools/train/position.h"

#include <gtest/gtest.h>

#include "tools/train/agreement.h"

namespace weft::train {
namespace {

const Position kMine{7, 4, 32, "0123456789abcdef"};

TEST(ProgressOfATraining, ComesBack) {
  const Position back = positionOf(textOf(kMine), "folder");
  EXPECT_EQ(back.step, 7);
  EXPECT_EQ(back.position, 4);
  EXPECT_EQ(back.samplesPerStep, 32);
  EXPECT_EQ(back.data, kMine.data);
}

TEST(ProgressOfATraining, HasTheLossScaleOfFp16) {
  Position position = kMine;
  EXPECT_FALSE(positionOf(textOf(position), "folder").lossScale);
  position.lossScale = LossScale::State{0x1p-1 + 4096, 17, 3};
  EXPECT_EQ(positionOf(textOf(position), "folder").lossScale, position.lossScale);
}

TEST(ProgressOfATraining, OfOldCheckpointsIsAsFarInTheData) {
  const Position old = positionOf(R"({"step": 5, "samples_per_step": 32})", "folder");
  EXPECT_EQ(old.position, 5);
  checkPosition(old, kMine, "folder");
}

TEST(ProgressOfATraining, IsNotThatOfOthers) {
  for (const char* text : {"", "[1]", R"({"rows": 12})", R"({"step": "5", "samples_per_step": 1})",
                           R"({"step": 5, "samples_per_step": 1, "loss_scale": {"scale": 2}})"})
    EXPECT_THROW(positionOf(text, "folder"), SharedFailure) << text;
}

TEST(ProgressOfATraining, StandsInOneDataAndBatch) {
  const auto refusal = [](const Position& stored) -> std::string {
    try {
      checkPosition(stored, kMine, "folder");
      return "accepted";
    } catch (const SharedFailure& failure) {
      EXPECT_EQ(failure.code(), 64);
      return failure.what();
    }
  };
  EXPECT_EQ(refusal({9, 9, 32, kMine.data}), "accepted");
  EXPECT_EQ(
      refusal({9, 9, 16, kMine.data}),
      "the checkpoint in folder is of steps of 16 sequences, and these are of 32 (ranks x "
      "--batch x --grad-accum); to begin with it all the same, say what is kept: --start-from "
      "folder --keep weights,state");
  EXPECT_EQ(refusal({9, 9, 32, "fedcba9876543210"}),
            "the checkpoint in folder has learned other data (fingerprints fedcba9876543210 and "
            "0123456789abcdef), in which it has a position; to learn this data with what it knows, "
            "say what is kept: --start-from folder --keep weights,state");
  EXPECT_EQ(
      refusal({9, 9, 32, kMine.data, "2 readers"}),
      "the checkpoint in folder has read its files as 2 readers, and this run would as : give "
      "--readers and --batch as they were");
}

}  // namespace
}  // namespace weft::train
