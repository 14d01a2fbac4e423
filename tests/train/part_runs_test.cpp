// SPDX-License-Identifier: Apache-2.0
// Whole runs of weft-train whose ranks have a model in parts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/train/small_runs.h"

namespace weft::train {
namespace {

class PartRuns : public SmallRuns {};

// Each part has a folder; the last save that all of them have counts, whatever one has beyond it. It
// may go on with more batches at a time.
TEST_F(PartRuns, PartsOfAModelAreSavedAndResumedTogether) {
  for (const char* way : {"tensor", "pipeline"}) {
    SCOPED_TRACE(way);
    const std::string save = folder_ / way,
                      flags = fmt::format("--steps 6 --batch 2 --{} 2 --reproducible", way);
    const Curve whole =
        train(fmt::format("{} --ranks 2 --grad-accum 2 --save-every 2 --save {}", flags, save));
    const std::string part = fmt::format("{}/{}-1-of-2/", save, way);
    EXPECT_TRUE(std::filesystem::exists(part + "step-00000006"));
    std::filesystem::remove_all(part + "step-00000006");
    const Curve resumed =
        train(fmt::format("{} --ranks 4 --resume {} --save {}", flags, save, save));
    EXPECT_EQ(resumed.losses, whole.losses);
    EXPECT_EQ(resumed.weights, whole.weights);
    std::filesystem::remove(folder_ / "csv");
  }
  const std::string tensor = folder_ / "tensor", pipeline = folder_ / "pipeline";
  for (const std::string& others : {std::string(), " --save " + tensor}) {  // which it might begin
    const Outcome refused = shell(command(fmt::format("--resume {}{}", tensor, others)));
    EXPECT_EQ(refused.exitCode, 64);
    EXPECT_NE(refused.output.find("is of --tensor 2, and this run is of --tensor 1"),
              std::string::npos)
        << refused.output;
  }
  const Outcome virtually = shell(command(
      "--pipeline 2 --ranks 2 --layers 4 --virtual-stages 2 --grad-accum 2 --resume " + pipeline));
  EXPECT_NE(virtually.output.find("is of --tensor 1 --pipeline 2 --virtual-stages 1, and this run "
                                  "is of --tensor 1 --pipeline 2 --virtual-stages 2"),
            std::string::npos)
      << virtually.output;
  const Outcome refused = shell(command("--tensor 2 --ranks 2 --resume " + pipeline));
  EXPECT_NE(refused.output.find("is of --tensor 1 --pipeline 2, and this run is of --tensor 2 "
                                "--pipeline 1; resume it with the same"),
            std::string::npos)
      << refused.output;
}

// One part's is damaged: the save before serves, of all parts; and if that is damaged as well the run says so.
TEST_F(PartRuns, ADamagedPartCostsTheStepsSinceTheSaveBefore) {
  const std::string save = folder_ / "save",
                    flags = fmt::format(
                        "--steps 4 --batch 2 --pipeline 2 --ranks 2 --grad-accum 2 --save-every 2 "
                        "--save {} --resume {}",
                        save, save),
                    second = save + "/pipeline-1-of-2/step-0000000";
  const Curve whole = train(flags);
  const auto cutOff = [&](const char* step) {
    std::filesystem::resize_file(second + step + "/shard-00000-of-00001.safetensors", 1000);
  };
  cutOff("4");
  std::filesystem::remove(folder_ / "csv");
  const Outcome resumed = shell(command(fmt::format("{} --json {}", flags, folder_ / "json")));
  EXPECT_EQ(resumed.exitCode, 0);
  EXPECT_NE(resumed.output.find("has 1000 bytes and should have"), std::string::npos)
      << resumed.output;
  EXPECT_NE(resumed.output.find("the damaged one is kept with the ending .damaged"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(save + "/pipeline-0-of-2/step-00000004.damaged"));
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(folder_ / "json")).at("weights"), whole.weights);
  cutOff("4");
  cutOff("2");
  const Outcome none = shell(command(flags));
  EXPECT_EQ(none.exitCode, 65);
  EXPECT_EQ(none.output.find("mismatched"), std::string::npos) << none.output;
}

// On more ranks with fewer batches each, which are summed by the same tree.
TEST_F(PartRuns, VirtualStagesAreSavedAndResumedTogether) {
  const std::string save = folder_ / "save",
                    flags =
                        "--layers 4 --steps 6 --batch 1 --pipeline 2 --virtual-stages 2 "
                        "--shard zero3 --reproducible ";
  const Curve whole =
      train(fmt::format("{} --ranks 2 --grad-accum 4 --save-every 2 --save {}", flags, save));
  std::filesystem::remove_all(save + "/pipeline-1-of-2-virtual-2/step-00000006");
  const Curve resumed = train(fmt::format("{} --ranks 4 --grad-accum 2 --resume {}", flags, save));
  EXPECT_EQ(resumed.losses, whole.losses);
  EXPECT_EQ(resumed.weights, whole.weights);
}

// How far they go ahead makes no difference to what is summed, or dropped.
TEST_F(PartRuns, EagerStagesLearnTheSame) {
  const std::string flags =
      "--layers 4 --steps 4 --batch 1 --grad-accum 6 --ranks 4 --pipeline 4 --dropout 0.1 ";
  const Curve whole = train(flags), eager = train(flags + "--eager");
  EXPECT_EQ(eager.losses, whole.losses);
  EXPECT_EQ(eager.weights, whole.weights);
}

// A checkpoint is resumed as it was cut, whatever would be measured now.
TEST_F(PartRuns, StagesThatAreCutByMeasuredTimesLearnTheSame) {
  const std::string save = folder_ / "save",
                    flags = "--layers 5 --steps 6 --batch 2 --ranks 2 --pipeline 2 ",
                    measured = "--partition measured ";
  const Curve bySizes = train(flags);
  const Curve byTimes = train(flags + measured + "--save-every 4 --save " + save);
  for (size_t i = 0; i < bySizes.losses.size(); ++i)
    EXPECT_NEAR(byTimes.losses[i] / bySizes.losses[i], 1, 1e-6);
  for (int stage = 0; stage < 2; ++stage)
    std::filesystem::remove_all(fmt::format("{}/pipeline-{}-of-2/step-00000006", save, stage));
  EXPECT_EQ(train(flags + "--resume " + save).weights, byTimes.weights);
  const Outcome other =
      shell(command("--layers 6 --ranks 2 --pipeline 2 --partition measured --resume " + save));
  EXPECT_EQ(other.exitCode, 65);
  EXPECT_NE(other.output.find("is of 5 layers, and this model has 6; fix: --layers 5"),
            std::string::npos)
      << other.output;
}

// Ended by the clock, when the last stage has passed a batch on to the first one again.
TEST_F(PartRuns, VirtualStagesEndInTime) {
  const Outcome outcome =
      shell(command("--layers 4 --batch 1 --ranks 2 --pipeline 2 --virtual-stages 2 --grad-accum 2 "
                    "--steps 100000 "
                    "--seconds 0.5"));
  EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
}

// Cut on the way in and put together on the way out, to the bit.
TEST_F(PartRuns, PartsOfAModelAreExportedAsOne) {
  const auto exported = [&](const std::string& flags) {
    const std::string file = folder_ / "weights.pt";
    const Outcome outcome =
        shell(command(fmt::format("--steps 2 --batch 2 --export {} {}", file, flags)));
    EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
    std::ostringstream bytes;
    bytes << std::ifstream(file, std::ios::binary).rdbuf();
    return bytes.str();
  };
  const std::string learned = exported("");
  const std::string init = "--lr 0 --init-from " + folder_.write("init.pt", learned);
  EXPECT_TRUE(exported(init + " --ranks 2 --tensor 2 --params bf16") == learned);
  const std::string tied = "--model gptneo ";  // the last stage has its embedding, too
  const std::string learnedTied = exported(tied);
  const std::string initTied = tied + "--lr 0 --init-from " + folder_.write("tied.pt", learnedTied);
  EXPECT_TRUE(exported(initTied + " --ranks 4 --tensor 2 --pipeline 2") == learnedTied);
  const std::string learnedDeep = exported(tied + "--layers 4");
  const std::string initDeep = tied + "--layers 4 --lr 0 --grad-accum 2 --init-from " +
                               folder_.write("deep.pt", learnedDeep);
  EXPECT_TRUE(exported(initDeep + " --ranks 2 --pipeline 2 --virtual-stages 2") == learnedDeep);
}

// A group reads one batch, with the cores of all of its ranks; a pipeline as well.
TEST_F(PartRuns, FiguresOfRanksThatShareAModelAreOfAllOfThem) {
  for (const char* way : {"tensor", "pipeline"}) {
    const Outcome outcome = shell(command(fmt::format(
        "--steps 9 --batch 2 --ranks 2 --{} 2 --peak-tflops 2 --json {}", way, folder_ / "json")));
    ASSERT_EQ(outcome.exitCode, 0) << outcome.output;
    const auto json = nlohmann::json::parse(std::ifstream(folder_ / "json"));
    const double sequences = json.at("sequences_per_s"), stepMs = json.at("step_ms");
    EXPECT_NEAR(sequences * stepMs / 2e3, 1, 0.3) << "each rank has steps of its own";
    EXPECT_NEAR(json.at("model_flops_utilization"),
                json.at("teraflop_per_s").get<double>() / (2 * 2), 1e-9);
    EXPECT_EQ(json.contains("pipeline_idle"), way == std::string("pipeline"));
    if (!json.contains("pipeline_idle")) continue;
    EXPECT_GT(json.at("pipeline_idle"), 0);
    EXPECT_EQ(json.at("pipeline_idle_of_schedule"), 0.5);  // of one batch
    EXPECT_NEAR(json.at("pipeline_idle_of_unequal_runs"), 0.5, 1e-9) << "one stage or the other";
  }
}

// Of a model that two ranks have in parts: alone they are the measure, and four are two models.
TEST_F(PartRuns, TheScalingTableIsOfModelsInParts) {
  const Outcome outcome = shell(command(
      fmt::format("--scaling 2,4 --scaling-seconds 0.3 --scaling-rounds 1 --batch 2 --pipeline 2 "
                  "--grad-accum 2 --optimizer lans --json {}",
                  folder_ / "json")));
  EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
  const auto rows = nlohmann::json::parse(std::ifstream(folder_ / "json")).at("scaling");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("ranks"), 2);
  EXPECT_DOUBLE_EQ(rows[0].at("efficiency_percent").at("median"), 100);
  EXPECT_GT(rows[1].at("independent_sequences_per_s").at("median"), 0);
  EXPECT_NE(outcome.output.find("4 sequences of 32 tokens per 2 ranks and step"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace weft::train
