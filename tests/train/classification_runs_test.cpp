// SPDX-License-Identifier: Apache-2.0
// Whole runs of weft-train that learn the classes of sentences.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <set>
#include <string>

#include "tests/train/small_runs.h"
#include "tools/train/random.h"
#include "tools/train/weights/stored_weights.h"

namespace weft::train {
namespace {

constexpr std::array kGood{"splendid", "moving", "witty", "fresh"},
    kBad{"dull", "clumsy", "tired", "stale"}, kThings{"film", "plot", "cast", "score"};

// "the plot is tired .": what counts is one word.
std::string sentences(size_t count, uint64_t seed) {
  std::string text = "sentence\tlabel\n";
  Random random(seed);
  const auto any = [&](const auto& words) { return words[random.below(words.size())]; };
  for (size_t i = 0; i < count; ++i) {
    const bool isGood = random.below(2) == 1;
    text += fmt::format("the {} is {} .\t{}\n", any(kThings), any(isGood ? kGood : kBad),
                        isGood ? 1 : 0);
  }
  return text;
}

std::string vocabulary() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nis\n.\n";
  for (const auto& words : {kGood, kBad, kThings})
    for (const char* word : words) text += fmt::format("{}\n", word);
  return text;
}

class Classifications : public SmallRuns {
 protected:
  Classifications() {
    folder_.write("train.tsv", sentences(300, 1));
    folder_.write("dev.tsv", sentences(101, 2));
    folder_.write("vocab", vocabulary());
  }
  std::string flags(const std::string& more) const {
    return fmt::format(
        "--model bert --task classification --data {} --valid {} --vocab {} --vocab-size 300 "
        "--layers 1 --lr 5e-3 {}",
        folder_ / "train.tsv", folder_ / "dev.tsv", folder_ / "vocab", more);
  }
  nlohmann::json summary() const { return nlohmann::json::parse(std::ifstream(folder_ / "json")); }
  void expectRefused(const std::string& more, int code, const std::string& text) const {
    expectLineRefused(command(flags(more)), code, text);
  }
  void expectLineRefused(const std::string& line, int code, const std::string& text) const {
    const Outcome outcome = shell(line);
    EXPECT_EQ(outcome.exitCode, code) << outcome.output;
    EXPECT_NE(outcome.output.find(text), std::string::npos) << outcome.output;
  }
};

// From nothing; the same bits on two ranks, evaluations included.
TEST_F(Classifications, AreLearned) {
  const std::string some = "--steps 60 --seq 16 --reproducible --eval-every 20 --dropout 0.1 ";
  const Curve one = train(flags(some + "--batch 4 --grad-accum 4"));
  const nlohmann::json json = summary();
  EXPECT_GE(json.at("validation_accuracy"), 0.95);
  EXPECT_LT(json.at("validation_loss"), 0.2);
  std::ifstream csv(folder_ / "csv");
  std::string head;
  std::getline(csv, head);
  EXPECT_TRUE(head.ends_with(",wire_bytes,valid_loss,valid_accuracy")) << head;
  const Curve two = train(flags(some + "--batch 4 --grad-accum 2 --ranks 2 --shard zero3"));
  EXPECT_EQ(two.losses, one.losses);
  EXPECT_EQ(two.weights, one.weights);
  EXPECT_EQ(summary().at("validation_loss"), json.at("validation_loss"));
  EXPECT_EQ(summary().at("validation_accuracy"), json.at("validation_accuracy"));
}

// In parts and in fp16 as well, and in RoBERTa, evaluated at the end where nothing else is said.
TEST_F(Classifications, AreLearnedByAnyWay) {
  for (const char* way :
       {"--layers 2 --ranks 4 --tensor 2 --pipeline 2 --grad-accum 2", "--params fp16"}) {
    train(flags(fmt::format("--steps 60 --seq 16 --batch 8 {}", way)));
    EXPECT_GE(summary().at("validation_accuracy"), 0.95) << way;
  }
  const std::string save = folder_ / "save";
  std::string line = command(fmt::format(
      "--model roberta --task classification --data {} --valid {} --seq 40 --steps 5 --json {} "
      "--export {} --save {} --resume {}",
      folder_ / "train.tsv", folder_ / "dev.tsv", folder_ / "json", folder_ / "weights", save,
      save));
  const Outcome roberta = shell(line);
  EXPECT_EQ(roberta.exitCode, 0) << roberta.output;
  EXPECT_GT(summary().at("validation_accuracy"), 0.1);
  const StoredWeights weights(folder_ / "weights");
  EXPECT_TRUE(weights.tensors().contains("classifier.out_proj.weight"));
  const std::string quiet = " --quiet";
  const Outcome evaluated = shell(line.erase(line.find(quiet), quiet.size()));
  EXPECT_NE(evaluated.output.find("# step 4: validation loss "), std::string::npos)
      << evaluated.output;
}

// A pre-trained model has another head, and a fine-tuned one this one.
TEST_F(Classifications, BeginWithTheWeightsOfOthers) {
  const std::string pretrained = folder_ / "pretrained.pt", tuned = folder_ / "tuned.safetensors";
  const std::string model =
      fmt::format("--model bert --vocab {} --vocab-size 300 --layers 1 ", folder_ / "vocab");
  const Outcome first = shell(command(model + "--steps 2 --batch 2 --export " + pretrained));
  ASSERT_EQ(first.exitCode, 0) << first.output;
  train(flags(
      fmt::format("--steps 60 --seq 32 --batch 16 --init-from {} --export {}", pretrained, tuned)));
  const double accuracy = summary().at("validation_accuracy");
  EXPECT_GE(accuracy, 0.95);
  const StoredWeights weights(tuned);
  for (const char* name : {"classifier.weight", "classifier.bias", "bert.pooler.dense.weight"})
    EXPECT_TRUE(weights.tensors().contains(name)) << name;
  EXPECT_EQ(weights.tensors().at("classifier.weight").tensor.shape, (std::vector<int64_t>{2, 32}));
  train(
      flags(fmt::format("--steps 1 --seq 32 --batch 16 --lr 0 --ranks 2 --shard zero3 "
                        "--params bf16 --init-from {}",
                        tuned)));
  EXPECT_NEAR(summary().at("validation_accuracy"), accuracy, 0.02);
  expectRefused("--seq 32 --classes 3 --init-from " + tuned, 65,
                "has the tensor classifier.weight as [2, 32]");
}

TEST_F(Classifications, OfBadFilesAreOneSentence) {
  folder_.write("dev.tsv", "sentence\tlabel\ngood\t1\nbad\t2\n");
  expectRefused("--ranks 2", 65, "dev.tsv: line 3 has no label of 0 to 1 after its tab");
  expectRefused("--valid /nowhere", 65, "cannot read /nowhere: ");
  expectLineRefused(without("vocab", command(flags("--model gpt"))), 64,
                    "--task classification is for BERT and RoBERTa, not for gpt");
  folder_.write("train.tsv", "sentence\tlabel\ngood\t1\n");
  expectLineRefused(without("valid", command(flags("--eval-every 1"))), 65,
                    "has too few sentences for the shares of --split");
}

}  // namespace
}  // namespace weft::train
