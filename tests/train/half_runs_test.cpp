// SPDX-License-Identifier: Apache-2.0
// Whole runs of weft-train in bf16, and in fp16 with a dynamic loss scale.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/train/small_runs.h"

namespace weft::train {
namespace {

class HalfRuns : public SmallRuns {
 protected:
  // By step, a column of the CSV file.
  std::vector<double> column(const std::string& name) const {
    std::ifstream csv(folder_ / "csv");
    std::string line;
    std::getline(csv, line);
    std::vector<std::string> names = wordsOf(line);
    const auto at = static_cast<size_t>(std::ranges::find(names, name) - names.begin());
    std::vector<double> values;
    while (std::getline(csv, line)) values.push_back(std::stod(wordsOf(line).at(at)));
    return values;
  }

 private:
  static std::vector<std::string> wordsOf(const std::string& line) {
    std::vector<std::string> words;
    std::istringstream stream(line);
    for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
    return words;
  }
};

// So that where norms of whole runs part, it is the weights that have.
TEST_F(HalfRuns, AStepInBf16HasTheNormOfFp32) {
  const std::string save = folder_ / "save",
                    step = "--steps 1 --batch 4 --keep weights --start-from " + save + " --params ";
  train("--steps 20 --batch 4 --save " + save);
  const auto first = [&](const std::string& params) {
    std::filesystem::remove(folder_ / "csv");
    return train(step + params);
  };
  const Curve fp32 = first("fp32");
  for (const char* params : {"bf16", "bf16-only --rounding stochastic"}) {
    const Curve bf16 = first(params);
    EXPECT_LT(distance(fp32.losses, bf16.losses), 0.005) << params;
    EXPECT_LT(distance(fp32.norms, bf16.norms), 0.02) << params;
  }
}

// Also where each step is made of several, and layers or the model are cut.
TEST_F(HalfRuns, FollowFp32) {
  const std::string flags = "--steps 25 --ranks 2 --batch 4 ";
  const Curve fp32 = train(flags), fp16 = train(flags + "--params fp16");
  EXPECT_LT(distance(fp32.losses, fp16.losses), 0.005);
  EXPECT_EQ(column("loss_scale"), std::vector<double>(25, 65536));
  const Curve sharded = train(flags + "--params fp16 --shard zero3 --recompute");
  EXPECT_EQ(sharded.losses, fp16.losses);
  EXPECT_EQ(sharded.weights, fp16.weights);
  for (const char* cut : {"", "--sequence-parallel"}) {
    const Curve parts =
        train(fmt::format("--steps 25 --ranks 4 --batch 4 --grad-accum 2 --tensor 2 --pipeline 2 "
                          "--params fp16 {}",
                          cut));
    EXPECT_LT(distance(fp32.losses, parts.losses), 0.005) << cut;
  }
}

TEST_F(HalfRuns, OfOtherFamiliesFollowFp32) {
  for (const char* model : {"bert", "neox"}) {
    const std::string flags = fmt::format("--model {} --steps 20 --batch 8 ", model);
    const Curve fp32 = train(flags), fp16 = train(flags + "--params fp16");
    EXPECT_LT(distance(fp32.losses, fp16.losses), 0.005) << model;
  }
}

// From a scale that is much too large: halved until gradients fit, doubled after four good steps,
// and too large again.
TEST_F(HalfRuns, SkipWhatOverflowsAndGrowAgain) {
  const std::string flags =
      "--steps 30 --batch 4 --ranks 2 --params fp16 --initial-loss-scale 1e9 --loss-scale-window 4 "
      "--shard zero1";
  train(flags);
  const std::vector<double> scales = column("loss_scale"), skipped = column("skipped_steps"),
                            losses = column("loss");
  ASSERT_EQ(scales.size(), 30u);
  EXPECT_EQ(scales[0], 1e9);
  int good = 0, grown = 0;
  for (size_t i = 0; i + 1 < scales.size(); ++i) {
    const bool isSkipped = skipped[i] > (i == 0 ? 0 : skipped[i - 1]);
    good = isSkipped ? 0 : good + 1;
    const double expected = isSkipped ? scales[i] / 2 : good == 4 ? 2 * scales[i] : scales[i];
    EXPECT_EQ(scales[i + 1], expected) << "step " << i;
    if (good == 4) good = 0, ++grown;
  }
  EXPECT_GT(skipped[5], 2);
  EXPECT_GT(grown, 1);
  EXPECT_GT(skipped.back(), skipped[15]) << "it never grew too large again";
  EXPECT_LT(losses.back(), losses.front() - 0.3);
  const auto json = nlohmann::json::parse(std::ifstream(folder_ / "json"));
  EXPECT_EQ(json.at("skipped_steps"), skipped.back());
  EXPECT_EQ(json.at("loss_scale"), scales.back());
}

// A checkpoint counts the steps that the optimizer has made.
TEST_F(HalfRuns, GoOnWithTheirLossScale) {
  const std::string save = folder_ / "save",
                    flags =
                        "--steps 16 --batch 2 --params fp16 --initial-loss-scale 3e8 "
                        "--loss-scale-window 3 --reproducible ";
  const Curve whole = train(flags + "--ranks 2 --save-every 9 --save " + save);
  const std::vector<double> scales = column("loss_scale"), skipped = column("skipped_steps");
  ASSERT_GT(skipped[8], 0);
  const Curve resumed = train(fmt::format("{} --ranks 2 --shard zero3 --resume {}/step-{:08}",
                                          flags, save, 9 - static_cast<int>(skipped[8])));
  EXPECT_EQ(resumed.losses, whole.losses);
  EXPECT_EQ(resumed.weights, whole.weights);
  EXPECT_EQ(column("loss_scale"), scales);
  EXPECT_EQ(column("skipped_steps"), skipped);
}

TEST_F(HalfRuns, TellWhoOverflowed) {
  const std::string flags =
      "--steps 2 --batch 2 --ranks 2 --params fp16 --loss-scale 1e12 --quiet=0";
  const Outcome outcome = shell(command(flags));
  EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("# step 0: skipped, as the gradient of "), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find(" overflowed at loss scale 1e+12\n"), std::string::npos);
  EXPECT_NE(outcome.output.find("# loss scale 1e+12 in the last step; 2 steps were skipped\n"),
            std::string::npos)
      << outcome.output;
}

// A gradient that does not fit at any scale, of a loss that is finite.
TEST_F(HalfRuns, EndWhereNoScaleHelps) {
  const Outcome outcome =
      shell(command("--steps 99 --batch 2 --params fp16 --initial-loss-scale 2 --lr 30 --clip 0"));
  EXPECT_EQ(outcome.exitCode, 65) << outcome.output;
  EXPECT_NE(outcome.output.find("try a smaller --lr or a longer --warmup"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace weft::train
