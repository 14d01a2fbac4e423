// SPDX-License-Identifier: Apache-2.0
// Whole runs of weft-train with a small model.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/train/small_runs.h"
#include "tests/unit/megatron/dataset.h"
#include "tools/train/recipes.h"

namespace weft::train {
namespace {

std::string contentOf(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

class Runs : public SmallRuns {
 protected:
  // The steps in the file, the last of which may be cut off, are those of the whole run.
  void expectPart(const Curve& whole, const std::string& output) const {
    std::ifstream csv(folder_ / "csv");
    std::string line;
    std::getline(csv, line);
    while (std::getline(csv, line) && !csv.eof()) {
      size_t step = 0;
      double loss = 0, norm = 0;
      ASSERT_EQ(std::sscanf(line.c_str(), "%zu,%lf,%lf", &step, &loss, &norm), 3) << line;
      ASSERT_EQ(loss, whole.losses.at(step)) << "step " << step << "\n" << output;
      ASSERT_EQ(norm, whole.norms.at(step)) << "step " << step;
    }
  }

  // A run that gets SIGTERM once `when`, a command of the shell, succeeds.
  Outcome terminated(const std::string& flags, const std::string& when) const {
    return shell(fmt::format(
        "{{ {} & launcher=$!; until {}; do kill -0 $launcher || break; sleep 0.01; done; "
        "kill -TERM $launcher; wait $launcher; }}",
        command(flags), when));
  }

  // A Megatron dataset "tokens", of ids below 340.
  void writeTokens() const {
    std::vector<uint16_t> tokens;
    for (int i = 0; i < 4000; ++i) tokens.push_back(static_cast<uint16_t>(i * i % 37 + 300));
    folder_.write("tokens.bin", test::tokensOf(tokens));
    folder_.write("tokens.idx", test::indexOf(std::vector<int32_t>(40, 100)));
  }

  // The points of the first line of that picture.
  static std::string firstLineOf(const std::string& svg) {
    std::ifstream file(svg);
    std::string line;
    while (std::getline(file, line))
      if (line.starts_with("<polyline")) return line.substr(line.find(" points="));
    return {};
  }
};

TEST_F(Runs, TwoRanksLearnWhatOneDoesWithTwiceTheBatch) {
  const Curve one = train("--steps 40 --batch 8");
  const Curve two = train("--steps 40 --batch 4 --ranks 2");
  ASSERT_EQ(one.losses.size(), 40u);
  EXPECT_LT(one.losses.back(), one.losses.front() - 1.5);
  EXPECT_LT(distance(one.losses, two.losses), 1e-4);
  EXPECT_LT(distance(one.norms, two.norms), 2e-3);
  EXPECT_LT(std::abs(one.losses[0] - two.losses[0]), 2e-6);  // before rounding could add up
}

TEST_F(Runs, TheSameSeedGivesTheSameBits) {
  const std::string flags = "--steps 12 --batch 4 --ranks 2 --seed 5 --eval-every 6";
  const Curve first = train(flags), again = train(flags),
              notOverlapped = train(flags + " --no-overlap");
  EXPECT_EQ(first.losses, again.losses);
  EXPECT_EQ(first.norms, again.norms);
  EXPECT_EQ(first.weights, again.weights);
  EXPECT_EQ(first.weights, notOverlapped.weights);
  EXPECT_TRUE(nlohmann::json::parse(contentOf(folder_ / "json")).contains("validation_loss"));
  EXPECT_NE(first.weights, train("--steps 12 --batch 4 --ranks 2 --seed 6").weights);
}

TEST_F(Runs, AccumulatedBatchesAreOneBatch) {
  const Curve whole = train("--steps 10 --batch 4 --ranks 2");
  const Curve parts = train("--steps 10 --batch 2 --accumulate 2 --ranks 2");
  EXPECT_LT(distance(whole.losses, parts.losses), 1e-4);
  EXPECT_LT(distance(whole.norms, parts.norms), 2e-3);
}

TEST_F(Runs, Bfloat16FollowsAtADistanceAndRepeatsItsBits) {
  const Curve fp32 = train("--steps 30 --batch 4 --ranks 2");
  const std::string flags = "--steps 30 --batch 4 --ranks 2 --dtype bf16 --wire bf16";
  const Curve bf16 = train(flags), again = train(flags);
  EXPECT_LT(distance(fp32.losses, bf16.losses), 0.02);
  EXPECT_EQ(bf16.losses, again.losses);
  EXPECT_EQ(bf16.weights, again.weights);
}

TEST_F(Runs, EveryFamilyLearnsAlikeOnOneRankAndOnTwo) {
  for (const char* model : {"bert", "neox"}) {
    const std::string flags = fmt::format("--model {} --steps 60 --lr 5e-3", model);
    const Curve one = train(flags + " --batch 16");
    const Curve two = train(flags + " --batch 8 --ranks 2");
    ASSERT_EQ(one.losses.size(), 60u);
    EXPECT_LT(one.losses.back(), one.losses.front() - 1.5) << model;
    EXPECT_LT(distance(one.losses, two.losses), 1e-3) << model;
    EXPECT_LT(std::abs(one.losses[0] - two.losses[0]), 4e-6) << model;
    const Curve bf16 = train(flags + " --batch 16 --dtype bf16");
    EXPECT_LT(distance(one.losses, bf16.losses), 0.05) << model;
  }
}

TEST_F(Runs, BothFormsOfRotaryAreOneModel) {
  const std::string flags = "--model neox --steps 20 --batch 8";
  const Curve partial = train(flags), whole = train(flags + " --rotary zero-frequency");
  EXPECT_LT(distance(partial.losses, whole.losses), 1e-4);
  EXPECT_LT(distance(partial.norms, whole.norms), 2e-3);
}

TEST_F(Runs, BertLearnsWordPiecesOfAFile) {
  const std::string vocabulary = folder_.write(
      "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nsquare\nof\nis\nand\nits\ncube\n.\n,\n");
  const Curve curve = train("--model bert --steps 30 --batch 8 --lr 5e-3 --vocab " + vocabulary);
  ASSERT_EQ(curve.losses.size(), 30u);
  EXPECT_NEAR(curve.losses.front(), std::log(30522.0) + std::log(2.0), 0.5);
  EXPECT_LT(curve.losses.back(), curve.losses.front() - 4);
}

TEST_F(Runs, WhateverIsShardedTheCurveIsTheSame) {
  const std::string flags = "--steps 8 --batch 2 --ranks 4 --grad-accum 1 --shard ";
  const Curve none = train(flags + "none");
  for (const char* scheme : {"zero1", "zero2", "zero3", "zero3 --recompute"}) {
    const Curve sharded = train(flags + scheme);
    EXPECT_EQ(sharded.losses, none.losses) << scheme;
    EXPECT_EQ(sharded.norms, none.norms) << scheme;
    EXPECT_EQ(sharded.weights, none.weights) << scheme;
  }
  const Curve groups = train(flags + "mics");  // adds in another order
  EXPECT_LT(distance(none.losses, groups.losses), 1e-5);
  const Curve lamb = train(flags + "none --optimizer lamb"),
              shardedLamb = train(flags + "zero1 --optimizer lamb");
  EXPECT_EQ(lamb.weights, shardedLamb.weights);
}

TEST_F(Runs, ActivationsInAFileGiveTheSameBits) {
  const std::string flags =
      "--steps 6 --ranks 4 --batch 2 --grad-accum 3 --layers 4 --dropout 0.1 ";
  for (const char* way : {"--shard zero3", "--tensor 2 --pipeline 2"}) {
    const Curve kept = train(flags + way);
    const Curve away = train(
        fmt::format("{}{} --offload activations --offload-dir {}", flags, way, folder_.path()));
    EXPECT_EQ(away.losses, kept.losses) << way;
    EXPECT_EQ(away.norms, kept.norms) << way;
    EXPECT_EQ(away.weights, kept.weights) << way;
    const auto json = nlohmann::json::parse(std::ifstream(folder_ / "json"));
    EXPECT_GT(json.at("offload_bytes"), 2 * 3 * 2 * 32 * 32 * 4 - 1) << "of a stage's blocks";
    EXPECT_GT(json.at("peak_resident_bytes"), 3e7) << "libraries are shared, the rest is not";
  }
}

// On the first disk there is no room for what the ranks write aside, on the second none for the file made of it, and on
// the third only for that of one stage.
TEST_F(Runs, ADiskTooSmallForAnExportIsTold) {
  const std::string disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  for (const auto& [size, way] :
       {std::pair{"size=64k", ""}, {"size=200k", ""}, {"size=120k", "--ranks 2 --pipeline 2"}}) {
    if (::mount("none", disk.c_str(), "tmpfs", 0, size) != 0) GTEST_SKIP() << "only root mounts";
    const Outcome outcome = shell(
        command(fmt::format("--steps 1 --batch 2 --export {}/model.safetensors {}", disk, way)));
    const bool isEmpty = std::filesystem::is_empty(disk);
    ::umount(disk.c_str());
    EXPECT_EQ(outcome.exitCode, 73) << outcome.output;
    EXPECT_NE(outcome.output.find("No space left on device"), std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.output.find("mismatched"), std::string::npos) << outcome.output;
    EXPECT_TRUE(isEmpty) << "half a file was left behind";
  }
}

// The run ends in its first step, and what was saved before stays.
TEST_F(Runs, ADiskTooSmallForActivationsIsTold) {
  const std::string disk = folder_ / "disk", save = folder_ / "save";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "only root mounts";
  ASSERT_EQ(shell(command("--steps 2 --batch 2 --save " + save)).exitCode, 0);
  const Outcome outcome = shell(command(
      fmt::format("--steps 4 --batch 8 --layers 4 --offload activations --offload-dir {}", disk)));
  ::umount(disk.c_str());
  EXPECT_EQ(outcome.exitCode, 73) << outcome.output;
  EXPECT_NE(outcome.output.find("disk: No space left on device; name a folder with room as "
                                "--offload-dir"),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(shell(command("--steps 3 --batch 2 --resume " + save)).exitCode, 0);
}

TEST_F(Runs, ReproducibleOnesAreTheSameBitsOnAnyNumberOfRanks) {
  const std::string flags = "--steps 4 --batch 1 --reproducible ";
  const Curve one = train(flags + "--grad-accum 24");
  for (const char* way :
       {"--ranks 3 --grad-accum 8 --shard zero1", "--ranks 4 --grad-accum 6 --shard mics",
        "--ranks 8 --grad-accum 3 --shard 2,2,4"}) {
    const Curve many = train(flags + way);
    EXPECT_EQ(many.losses, one.losses) << way;
    EXPECT_EQ(many.norms, one.norms) << way;
    EXPECT_EQ(many.weights, one.weights) << way;
  }
}

// Gathered for forward and for backward, and reduced: 2 bytes each on two ranks, whatever the cut.
TEST_F(Runs, Zero3MovesEachWeightAsOftenAsItIsUsed) {
  for (const char* flags : {"--bucket-mb 0.3", "--bucket-mb 4"}) {
    train(fmt::format("--steps 4 --batch 1 --layers 4 --hidden 256 --ranks 2 --shard zero3 {}",
                      flags));
    const double bytes =
        nlohmann::json::parse(std::ifstream(folder_ / "json")).at("wire_bytes_per_parameter");
    EXPECT_LT(bytes, 6.2) << flags;
    EXPECT_GT(bytes, 4.0) << flags;
  }
}

TEST_F(Runs, Bfloat16WeightsNeedStochasticRounding) {
  const std::string flags = "--steps 60 --batch 8 --lr 1e-3 ";
  const Curve fp32 = train(flags);
  const Curve up = train(flags + "--params bf16-only --rounding stochastic");
  const Curve nearest = train(flags + "--params bf16-only");
  EXPECT_LT(std::abs(up.losses.back() - fp32.losses.back()),
            std::abs(nearest.losses.back() - fp32.losses.back()));
}

// What the optimizer steps is the same draw, to the bit, whatever the model computes with.
TEST_F(Runs, InitialWeightsDoNotDependOnTheirType) {
  const auto weightsOf = [&](const std::string& flags) {
    const std::string file = folder_ / "weights";
    const Outcome outcome =
        shell(command("--model neox --rotary zero-frequency --steps 1 --batch 1 --lr 0 --export " +
                      file + flags));
    EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
    std::ostringstream bytes;
    bytes << std::ifstream(file, std::ios::binary).rdbuf();
    return bytes.str();
  };
  const std::string fp32 = weightsOf("");
  EXPECT_TRUE(weightsOf(" --params bf16 --ranks 2 --shard zero3") == fp32);
  EXPECT_FALSE(weightsOf(" --params bf16-only") == fp32) << "there is nothing but their rounding";
}

// Tokens of a Megatron dataset, evaluated as they are learned.
TEST_F(Runs, TokensOfMegatronAreLearnedAndEvaluated) {
  writeTokens();
  const std::string flags = fmt::format(
      "--megatron {} --vocab-size 340 --global-batch 8 --batch 2 --eval-every 10 "
      "--eval-batches 2 --steps 20 --reproducible --lr 5e-3 --csv {} --json {}",
      folder_ / "tokens", folder_ / "csv", folder_ / "json");
  const auto curve = [&](const std::string& more) {
    const Outcome outcome = shell(command(flags + more));
    EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
    std::vector<std::string> evaluated;
    std::ifstream csv(folder_ / "csv");
    std::string line;
    std::getline(csv, line);
    EXPECT_TRUE(line.ends_with(",wire_bytes,valid_loss,valid_perplexity")) << line;
    while (std::getline(csv, line))
      if (!line.ends_with(",,"))
        evaluated.push_back(line.substr(0, line.find(',') + 1) +
                            line.substr(line.rfind(',', line.rfind(',') - 1) + 1));
    return evaluated;
  };
  const auto one = curve("");
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[0].substr(0, 2), "9,");
  EXPECT_EQ(one, curve(" --ranks 2 --shard zero3"));
  const auto json = nlohmann::json::parse(std::ifstream(folder_ / "json"));
  EXPECT_LT(json.at("validation_loss"), 4.5);
  const Outcome small = shell(command(flags + " --vocab-size 330"));
  EXPECT_EQ(small.exitCode, 65);
  EXPECT_NE(small.output.find("is not below the model's vocabulary of 330"), std::string::npos)
      << small.output;
  EXPECT_EQ(shell(command(flags + " --ranks 3")).exitCode, 64);
}

// What a thread reads ahead is of the step that comes next, whichever that is.
TEST_F(Runs, ResumesAtTheVerySampleOfOtherData) {
  writeTokens();
  for (const std::string& data :
       {std::string("--model bert --dropout 0.1"),
        fmt::format("--megatron {} --vocab-size 340", folder_ / "tokens")}) {
    const std::string flags = data + " --steps 9 --batch 2 --reproducible";
    const Curve whole =
        train(fmt::format("{} --grad-accum 4 --save-every 5 --save {}", flags, folder_ / "save"));
    const Curve resumed = train(fmt::format("{} --ranks 2 --grad-accum 2 --resume {}", flags,
                                            folder_ / "save/step-00000005"));
    EXPECT_EQ(resumed.losses, whole.losses) << data;
    EXPECT_EQ(resumed.weights, whole.weights) << data;
    std::filesystem::remove_all(folder_ / "save");
    std::filesystem::remove(folder_ / "csv");
  }
}

// Killed at random moments and resumed, on another number of ranks each time: each step that is
// made is that of a run that nobody disturbed. TRAIN_TEST_KILLS: how often, in a long run.
TEST_F(Runs, AKilledRunGoesOnWhereItsCheckpointIs) {
  const std::string flags = "--steps 60 --batch 1 --reproducible ";
  const Curve whole = train(flags + "--grad-accum 4");
  const char* const wanted = std::getenv("TRAIN_TEST_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 3;
  const char* const ways[] = {"--ranks 2 --grad-accum 2 --shard zero1", "--ranks 4 --shard mics",
                              "--grad-accum 4"};
  std::mt19937 random(4711);
  for (int done = 0, round = 0; done < kills; ++round) {
    const std::string folder = folder_ / fmt::format("checkpoints{}", round);
    for (int run = 0;; ++run) {
      ASSERT_LT(run, 100) << "never ends";
      const double seconds = 0.3 + 0.1 * static_cast<double>(random() % 20) + 0.3 * run;
      const Outcome outcome = shell(fmt::format(
          "timeout -s KILL {:.1f} {}", seconds,
          command(fmt::format("--csv {} --json {} --save {} --save-every 3 --resume {} {} {}",
                              folder_ / "csv", folder_ / "json", folder, folder, flags,
                              ways[random() % 3]))));
      expectPart(whole, outcome.output);
      if (outcome.exitCode == 0) break;
      ASSERT_EQ(outcome.exitCode, 137) << outcome.output;
      ++done;
    }
    const Curve resumed = readCurve();  // of all its runs
    EXPECT_EQ(resumed.losses, whole.losses);
    EXPECT_EQ(resumed.weights, whole.weights);
    std::remove((folder_ / "csv").c_str());
  }
}

TEST_F(Runs, SigtermSavesAndTheNextRunContinuesTheCurve) {
  const std::string csv = folder_.write("csv", ""), json = folder_ / "ended",
                    page = folder_ / "page";
  const std::string flags =
      fmt::format("--batch 2 --ranks 2 --csv {} --save {} --resume {} --steps ", csv,
                  folder_ / "save", folder_ / "save");
  const std::string endless = fmt::format("{}1000000 --json {} --report {}", flags, json, page);
  const Outcome outcome = terminated(endless, fmt::format("[ $(cat {} | wc -l) -ge 5 ]", csv));
  EXPECT_EQ(outcome.exitCode, 75) << outcome.output;
  const size_t steps = readCurve().losses.size();
  EXPECT_EQ(
      outcome.output,
      fmt::format("weft-train: ended by SIGTERM after {} steps: saved in {}; the same command "
                  "with --resume {} goes on\n",
                  steps, folder_ / "save", folder_ / "save"));
  const std::string why = fmt::format("ended by SIGTERM after {} steps", steps);
  EXPECT_EQ(nlohmann::json::parse(contentOf(json)).at("failure"), why);
  EXPECT_NE(contentOf(page).find(why), std::string::npos);
  EXPECT_EQ(shell(command(fmt::format("{}{}", flags, steps + 2))).output, "");
  EXPECT_EQ(readCurve().losses.size(), steps + 2);
  folder_.write("csv", "step,loss\n");
  const Outcome other = shell(command(fmt::format("{}{}", flags, steps + 3)));
  EXPECT_EQ(other.exitCode, 65);
  EXPECT_NE(other.output.find("csv is no curve of weft-train"), std::string::npos) << other.output;
}

TEST_F(Runs, SigtermWhileLibtorchIsLoadedIsTriedAgain) {
  const Outcome outcome = terminated("--steps 1000000", "grep -q rank /proc/$launcher/comm");
  EXPECT_EQ(outcome.exitCode, 75) << outcome.output;
}

TEST_F(Runs, SigtermEndsAnEvaluation) {
  const std::string csv = folder_.write("csv", "");
  const Outcome outcome = terminated(
      fmt::format("--steps 1000000 --batch 2 --eval-every 2 --eval-batches 1000000 --csv {} "
                  "--save {}",
                  csv, folder_ / "save"),
      fmt::format("[ $(cat {} | wc -l) -ge 2 ]", csv));
  EXPECT_EQ(outcome.exitCode, 75);
  EXPECT_EQ(outcome.output.find("weft-train: ended by SIGTERM after 2 steps: saved in "), 0u)
      << outcome.output;
}

// The newest checkpoint is cut off: the one before does, and is followed by the same steps.
TEST_F(Runs, ADamagedCheckpointCostsTheStepsSinceTheOneBefore) {
  const std::string save = folder_ / "save", last = save + "/step-00000009",
                    flags = fmt::format(
                        "--steps 9 --batch 2 --reproducible --ranks 2 --save {} "
                        "--save-every 3 --resume {} --csv {} --json {}",
                        save, save, folder_ / "csv", folder_ / "json");
  ASSERT_EQ(shell(command(flags)).exitCode, 0);
  EXPECT_FALSE(std::filesystem::exists(last + ".2")) << "saved twice";
  const Curve whole = readCurve();
  const auto cutOff = [](const std::string& checkpoint) {
    std::filesystem::resize_file(checkpoint + "/shard-00000-of-00001.safetensors", 1000);
  };
  cutOff(last);
  const Outcome resumed = shell(command(flags));
  EXPECT_EQ(resumed.exitCode, 0);
  EXPECT_NE(resumed.output.find("should have "), std::string::npos) << resumed.output;
  EXPECT_NE(resumed.output.find("; going on from the one before, " + save +
                                "/step-00000006; the "
                                "damaged one is kept"),
            std::string::npos)
      << resumed.output;
  EXPECT_TRUE(std::filesystem::exists(last + ".damaged"));
  EXPECT_EQ(readCurve().losses, whole.losses);
  EXPECT_EQ(readCurve().weights, whole.weights);
  for (const char* both : {"/step-00000009", "/step-00000006"}) cutOff(save + both);
  const Outcome none = shell(command(flags));
  EXPECT_EQ(none.exitCode, 65) << none.output;
}

// On new data, what is kept goes on and what is not begins anew.
TEST_F(Runs, AnEarlierTrainingIsStartedFromByWhatIsKept) {
  const std::string save = folder_ / "save", exported = folder_ / "weights.safetensors",
                    other = folder_.write("other", someText().substr(9000)),
                    flags = "--batch 4 --steps ";
  const Curve first = train(fmt::format("{}6 --save {} --export {}", flags, save, exported));
  const std::string start = fmt::format("{}9 --start-from {} --keep weights", flags, save),
                    onOther = " --data " + other;
  const Curve whole = train(fmt::format("{}9 --resume {}", flags, save));
  EXPECT_EQ(train(start + ",state,schedule,data").weights, whole.weights);

  const Curve alone = train(start + onOther);
  EXPECT_EQ(alone.losses.size(), 9u);
  EXPECT_EQ(alone.weights,
            train(fmt::format("{}9 --init-from {}{}", flags, exported, onOther)).weights);
  std::remove((folder_ / "csv").c_str());
  const Outcome scheduled =
      shell(command(fmt::format("{},schedule{} --csv {}", start, onOther, folder_ / "csv")));
  EXPECT_EQ(scheduled.output, "");
  std::ifstream csv(folder_ / "csv");
  std::string line;
  std::getline(csv, line);
  std::getline(csv, line);
  EXPECT_TRUE(line.starts_with(fmt::format("6,{:.17g},", alone.losses.front()))) << line;

  const auto says = [&](const std::string& more, int code, const std::string& text) {
    const Outcome outcome = shell(command(flags + more));
    EXPECT_EQ(outcome.exitCode, code) << more;
    EXPECT_NE(outcome.output.find(text), std::string::npos) << outcome.output;
  };
  says(fmt::format("9 --resume {}{}", save, onOther), 64, "has learned other data (fingerprints ");
  says(fmt::format("9 --start-from {} --keep weights,state --optimizer sgd", save), 65,
       "and this optimizer needs weight, momentum");
  says(fmt::format("1 --start-from {} --keep weights --optimizer sgd", save), 0, "");
}

TEST_F(Runs, AFullDiskWhileSavingIsToldAndTheLastGoodOneStays) {
  const std::string disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "only root mounts";
  const std::string flags = fmt::format(
      "--steps 12 --batch 1 --ranks 2 --save-every 3 --save {} --resume {}", disk, disk);
  const Outcome full = shell(command(flags));
  EXPECT_EQ(full.exitCode, 73) << full.output;
  EXPECT_NE(full.output.find("safetensors': No space left on device; fix: make room"),
            std::string::npos)
      << full.output;
  ::mount("none", disk.c_str(), "tmpfs", MS_REMOUNT, "size=8m");
  EXPECT_EQ(shell(command(flags)).exitCode, 0);
  ::umount(disk.c_str());
}

TEST_F(Runs, UnderALauncherThereIsNoOther) {
  const Outcome outcome = shell("WEFT_RANK=0 WEFT_SIZE=2 " + command("--ranks 2"));
  EXPECT_EQ(outcome.exitCode, 64);
  EXPECT_NE(outcome.output.find("starts ranks of its own, and a launcher"), std::string::npos)
      << outcome.output;
}

TEST_F(Runs, ARankThatDoesNotKnowTheSecretEndsWith77) {
  const std::string job = fmt::format(
      "WEFT_SIZE=2 WEFT_ROOT=127.0.0.1:{} WEFT_INIT_TIMEOUT_MS=60000", 10000 + ::getpid() % 10000);
  const Outcome outcome = shell(fmt::format(
      "{{ {0} WEFT_RANK=0 WEFT_SECRET=one {1} >/dev/null 2>&1 & first=$!; {0} WEFT_RANK=1 "
      "WEFT_SECRET=other {1}; code=$?; kill $first; wait; exit $code; }}",
      job, command("--steps 1 --batch 2")));
  EXPECT_EQ(outcome.exitCode, 77) << outcome.output;
}

TEST_F(Runs, ALossThatIsNotFiniteNamesRankAndStep) {
  const Outcome outcome =
      shell(command("--steps 100 --batch 4 --ranks 2 --lr 1e30 --warmup 0 --clip 0"));
  EXPECT_EQ(outcome.exitCode, 65);
  EXPECT_NE(outcome.output.find("the loss of rank 0 is "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(" at step "), std::string::npos) << outcome.output;
}

TEST_F(Runs, AFailureIsInTheReportsOfTheStepsBefore) {
  const std::string csv = folder_ / "csv", svg = folder_ / "svg", page = folder_ / "page";
  const Outcome outcome = shell(command(fmt::format(
      "--steps 100 --batch 4 --ranks 2 --lr 1e30 --warmup 0 --clip 0 --csv {} --json {} --svg {} "
      "--report {}",
      csv, folder_ / "json", svg, page)));
  EXPECT_EQ(outcome.exitCode, 65);
  EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1) << outcome.output;
  const auto json = nlohmann::json::parse(contentOf(folder_ / "json"));
  EXPECT_EQ(fmt::format("weft-train: {}\n", json.at("failure").get<std::string>()), outcome.output);
  const auto steps = json.at("steps").get<int64_t>();
  EXPECT_GT(steps, 0);
  EXPECT_TRUE(outcome.output.find(fmt::format(" at step {}:", steps)) != std::string::npos);
  EXPECT_FALSE(json.contains("weights")) << "as if they were good";
  EXPECT_EQ(std::ranges::count(contentOf(csv), '\n'), steps + 1);
  EXPECT_NE(contentOf(svg).find(", ended early"), std::string::npos);
  EXPECT_NE(contentOf(page).find(json.at("failure").get<std::string>()), std::string::npos);
}

TEST_F(Runs, AFailureInTheFirstStepSaysWhatIsNotWritten) {
  const std::string flags = "--batch 4 --lr 1e30 --warmup 0 --clip 0 --steps ";
  const std::string save = folder_ / "save", json = folder_ / "json";
  ASSERT_EQ(shell(command(fmt::format("{} 1 --save {}", flags, save))).exitCode, 0);
  const Outcome outcome =
      shell(command(fmt::format("{} 9 --resume {} --json {}", flags, save, json)));
  EXPECT_EQ(outcome.exitCode, 65);
  const std::string told = fmt::format(
      "weft-train: no step was made: not written, as they tell of steps made: --json {}\n"
      "weft-train: the loss of rank 0 is ",
      json);
  EXPECT_TRUE(outcome.output.starts_with(told)) << outcome.output;
}

TEST_F(Runs, ARankOnItsOwnSpeaksForItself) {
  const Outcome outcome =
      shell(command("--steps 100 --batch 4 --ranks 2 --independent --lr 1e30 --warmup 0 --clip 0"));
  EXPECT_EQ(outcome.exitCode, 65);
  for (const char* who : {"rank 0 alone: the loss", "rank 1 alone: the loss"})
    EXPECT_NE(outcome.output.find(who), std::string::npos) << outcome.output;
}

TEST_F(Runs, BadInputIsOneSentence) {
  const struct {
    std::string flags;
    int code;
    std::string text;
  } cases[] = {
      {"--ranks 2 --data /nowhere", 65,
       "weft-train: cannot read /nowhere: No such file or directory\n"},
      {"--ranks 2 --seq 30000", 65, "needs at least 30001\n"},
      {"--ranks 2 --model bert --vocab /nowhere", 65,
       "weft-train: cannot read /nowhere: No such file or directory\n"},
      {"--ranks 2 --heads 5", 64, "weft-train: --heads 5 does not divide --hidden 32\n"},
      {"--csv /nowhere/curve --steps 1", 73,
       "cannot write '/nowhere/curve': No such file or directory; "},
      {"--json /nowhere/report --ranks 2", 73, "cannot write '/nowhere/report': "},
      {"--tensorboard /proc/nowhere --ranks 2", 73,
       "cannot make the folder --tensorboard /proc/nowhere: "},
      {"--export /nowhere/model --ranks 2", 73, "cannot write '/nowhere/model': "},
      {"--save /proc/nowhere --ranks 2", 73, "cannot make the folder --save /proc/nowhere: "},
      {"--init-from /nowhere --ranks 2", 65,
       "weft-train: cannot read /nowhere: No such file or directory\n"},
      {"--init-from /nowhere --steps 1", 65,
       "weft-train: cannot read /nowhere: No such file or directory\n"},
      {"--resume /nowhere --ranks 2", 64, "there is no checkpoint in --resume /nowhere; "},
      {"--resume /nowhere --steps 1", 64, "there is no checkpoint in --resume /nowhere; "},
      {"--ranks 2 --data /dev/zero", 65, "cannot read /dev/zero: it is no regular file\n"},
      {"--model bert --vocab /dev/zero", 65, "cannot read /dev/zero: it is no regular file\n"},
      {"--ranks 2 --seq 19000 --batch 100000", 78, "GB; lower --seq or --batch\n"},
      {"--ranks 0", 64, ""},
  };
  for (const auto& [flags, code, text] : cases) {
    const Outcome outcome = shell(command(flags));
    EXPECT_EQ(outcome.exitCode, code) << flags;
    EXPECT_NE(outcome.output.find(text), std::string::npos) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
}

TEST_F(Runs, AFullDiskIsToldOncePerFileAndCostsNothingElse) {
  const std::string disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=8k") != 0) GTEST_SKIP() << "only root mounts";
  const Outcome outcome = shell(
      command(fmt::format("--steps 200 --batch 1 --csv {}/csv --tensorboard {}/events --json {}",
                          disk, disk, folder_ / "json")));
  ::umount(disk.c_str());
  EXPECT_EQ(outcome.exitCode, 73) << outcome.output;
  EXPECT_NE(outcome.output.find("disk/csv': No space left on device"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find(".0': No space left on device"), std::string::npos);
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 2) << outcome.output;
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(folder_ / "json")).at("steps"), 200);
}

TEST_F(Runs, ReportsMayGoToStandardOutput) {
  const Outcome outcome = test::runCommand(command("--steps 2 --batch 1 --csv - --json -"));
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_EQ(outcome.output.find("step,loss,"), 0u) << outcome.output;
  const auto json = nlohmann::json::parse(outcome.output.substr(outcome.output.find('{')));
  EXPECT_EQ(json.at("steps"), 2);
  EXPECT_EQ(json.at("hosts"), 1);
  EXPECT_GT(json.at("teraflop_per_s"), 0);
  EXPECT_EQ(json.at("settings").at("--batch"), "1");
}

TEST_F(Runs, AnExportFollowsALink) {
  std::filesystem::create_symlink("model", folder_ / "link");
  EXPECT_EQ(shell(command("--steps 1 --batch 1 --export " + folder_ / "link")).exitCode, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_ / "model"));
}

TEST_F(Runs, EveryRecipeTakesItsStepsScaledDown) {
  for (const std::string& name : recipeNames()) {
    const bool isCut = !name.starts_with("bert");  // by tensor parallelism, as far as it may be
    const Outcome outcome = shell(fmt::format(
        "{} --data {} --recipe {} --scale-down --vocab-size 300 --threads 1 --csv {}{}", WEFT_TRAIN,
        folder_ / "text", name, folder_ / "csv", isCut ? " --ranks 2" : ""));
    EXPECT_EQ(outcome.output.find("--tensor is 2 here") != std::string::npos, isCut) << name;
    EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("# recipe " + name + ": --model "), std::string::npos)
        << outcome.output;
    const Curve curve = readCurve();
    ASSERT_EQ(curve.losses.size(), 20u) << name;
    EXPECT_LT(curve.losses.back(), curve.losses.front()) << name;
  }
}

TEST_F(Runs, ALostRankIsAnErrorWorthARetry) {
  // Rank 1 is killed once the curve shows that training goes on.
  const std::string csv = folder_.write("csv", "");
  const Outcome outcome = shell(fmt::format(
      "{{ {} & launcher=$!; while kill -0 $launcher && [ $(cat {} | wc -l) -lt 5 ]; do sleep 0.05; "
      "done; "
      "read rank0 rank1 < /proc/$launcher/task/$launcher/children; kill -9 $rank1; wait $launcher; "
      "}}",
      command(fmt::format("--steps 1000000 --batch 2 --ranks 2 --csv {}", csv)), csv));
  EXPECT_EQ(outcome.exitCode, 128 + 9) << outcome.output;
  EXPECT_NE(outcome.output.find("weft-train: rank 0: "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 1 (pid "), std::string::npos) << outcome.output;
}

TEST_F(Runs, ThePictureHasThePointOfEachStep) {
  train("--steps 3 --batch 2 --ranks 2 --svg " + folder_ / "loss.svg");
  const std::string points = firstLineOf(folder_ / "loss.svg");
  EXPECT_EQ(std::count(points.begin(), points.end(), ','), 3) << points;
}

TEST_F(Runs, TheScalingTableHasARowForEachNumberOfRanks) {
  const Outcome outcome =
      shell(command(fmt::format("--scaling 1,2 --scaling-seconds 0.3 --scaling-rounds 2 --batch 2 "
                                "--svg {} --json {}",
                                folder_ / "scaling.svg", folder_ / "json")));
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(folder_ / "json")).at("scaling").size(), 2u);
  const std::string points = firstLineOf(folder_ / "scaling.svg");
  EXPECT_EQ(std::count(points.begin(), points.end(), ','), 2) << points;
  std::istringstream lines(outcome.output);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), 3u) << outcome.output;
  for (int row : {1, 2}) {
    int ranks = 0;
    double total = 0, perRank = 0, efficiency = 0;
    ASSERT_EQ(std::sscanf(rows[static_cast<size_t>(row)].c_str(), "%d %lf %*s %lf %lf %%", &ranks,
                          &total, &perRank, &efficiency),
              4)
        << rows[static_cast<size_t>(row)];
    EXPECT_EQ(ranks, row);
    EXPECT_NEAR(perRank * ranks, total, 0.0051 * (ranks + 1));
    if (row == 1) {
      EXPECT_EQ(efficiency, 100);
    }
  }
  EXPECT_NE(outcome.output.find("# the same run differed by up to "), std::string::npos);
}

}  // namespace
}  // namespace weft::train
