// SPDX-License-Identifier: Apache-2.0
#include "tools/train/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/train/degrees.h"
#include "tools/train/failure.h"
#include "tools/train/recipes.h"

namespace weft::train {
namespace {

using Words = std::vector<const char*>;

Options parse(Words words, const Words& data = {"--data", "text"}) {
  words.insert(words.begin(), data.begin(), data.end());
  words.insert(words.begin(), "weft-train");
  return parseOptions(static_cast<int>(words.size()), words.data());
}

std::string refusal(const Words& words, const Words& data = {"--data", "text"}) {
  try {
    parse(words, data);
    return "accepted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), 64);
    return failure.what();
  }
}

TEST(Options, ReadsWhatIsGiven) {
  const Options options =
      parse({"--dtype", "bf16", "--wire=bf16", "--scaling", "1,2", "--seed", "7"});
  EXPECT_EQ(options.data, "text");
  EXPECT_TRUE(options.bf16);
  EXPECT_TRUE(options.wireBf16);
  EXPECT_EQ(options.scaling, (std::vector<int>{1, 2}));
  EXPECT_EQ(options.seed, 7u);
}

TEST(Options, WhatIsEmptyOrNoNumberIsRefused) {
  EXPECT_EQ(refusal({"--save", ""}),
            "--save: is empty; give a value, or leave it out (--help lists the options)");
  for (const char* name : {"--beta1", "--beta2", "--epsilon", "--dropout", "--momentum"})
    EXPECT_EQ(refusal({name, "nan"}),
              std::string(name) + ": 'nan' is no number (--help lists the options)");
}

TEST(Options, WhoStartsFromATrainingSaysWhatIsKept) {
  const Options options = parse({"--start-from", "old", "--keep", "weights,schedule"});
  EXPECT_FALSE(options.keep.state);
  EXPECT_TRUE(options.keep.schedule);
  EXPECT_FALSE(options.keep.data);
  EXPECT_EQ(refusal({"--keep", "weights"}),
            "--keep says what is kept of a checkpoint; name its folder, --start-from DIR");
  EXPECT_EQ(
      refusal({"--start-from", "old"}),
      "--start-from: say what is kept of it: --keep weights, or with it any of state, schedule "
      "and data, such as --keep weights,state");
  EXPECT_EQ(refusal({"--start-from", "old", "--keep", "state,data"}),
            "--keep state,data: without weights there is nothing to start from; leave out "
            "--start-from, or keep them");
  EXPECT_EQ(refusal({"--start-from", "old", "--keep", "weights", "--init-from", "file"}),
            "--start-from and --init-from both bring weights; leave one out");
  EXPECT_NE(refusal({"--start-from", "old", "--keep", "mood"}).find("mood"), std::string::npos);
}

TEST(Options, TheLastOfEqualOptionsCounts) {
  EXPECT_EQ(parse({"--steps", "5", "--steps=9"}).steps, 9);
}

TEST(Options, AModelHasANameAndSizes) {
  EXPECT_EQ(parse({}).shape, (ModelShape{Family::kGpt, 4, 256, 4, 256, 128}));
  EXPECT_EQ(parse({"--model", "pythia-70m", "--layers=2"}).shape,
            (ModelShape{Family::kNeox, 2, 512, 8, 50304, 128}));
  EXPECT_EQ(parse({"--model", "bert-large"}).shape,
            (ModelShape{Family::kBert, 24, 1024, 16, 30522, 512, true, false}));
  EXPECT_EQ(parse({"--model", "bert", "--seq", "600"}).shape.positions, 600);
  EXPECT_EQ(parse({"--model", "bert", "--vocab", "vocab.txt"}).shape.vocabulary, 30522);
}

TEST(Options, ARecipeSaysWhatTheCommandLineDoesNot) {
  const Options whole = parse({"--recipe", "bert-1.5b-dl1"});
  EXPECT_EQ(whole.shape.hidden, 1600);
  EXPECT_EQ(whole.batch * whole.accumulate, 384);
  EXPECT_EQ(whole.steps, 155000);
  EXPECT_EQ(whole.decay, Decay::kLinear);
  EXPECT_EQ(whole.shard, "zero1");
  EXPECT_NE(whole.recipeNotes.find("--lr 1.5e-3"), std::string::npos);
  const Options other = parse({"--lr", "3e-3", "--recipe", "bert-1.5b-dl1", "--global-batch=768"});
  EXPECT_EQ(other.learningRate, 3e-3);
  EXPECT_EQ(other.accumulate, 1);
  EXPECT_EQ(other.recipeNotes.find("--lr"), other.recipeNotes.find("--lr is that"));
}

TEST(Options, EveryRecipeCanBeScaledDown) {
  for (const std::string& name : recipeNames()) {
    const Options tiny = parse({"--recipe", name.c_str(), "--scale-down"});
    EXPECT_EQ(tiny.steps, 20) << name;
    EXPECT_EQ(tiny.shape.hidden, 64) << name;
    EXPECT_EQ(tiny.shape.family, parse({"--recipe", name.c_str()}).shape.family) << name;
  }
  EXPECT_EQ(parse({"--recipe=bert-1.5b-dl1", "--scale-down"}).warmup, 1);
  EXPECT_EQ(parse({"--recipe=bert-1.5b-dl1", "--scale-down"}).hold, 5);
}

TEST(Options, SettingsAreWhatWasTypedAndTheDefaults) {
  const Options options = parse({"--recipe", "bert-1.5b-dl1", "--wire=bf16", "--split", "9,1",
                                 "--steps", "5", "--steps", "7", "--quiet"});
  const auto setting = [&](const std::string& name) {
    const auto found = std::ranges::find(options.settings, name, &Setting::name);
    return found == options.settings.end() ? "none" : found->value + (found->isGiven ? "!" : "");
  };
  EXPECT_EQ(setting("--wire"), "bf16!");
  EXPECT_EQ(setting("--dtype"), "fp32");
  EXPECT_EQ(setting("--split"), "9,1!");
  EXPECT_EQ(setting("--steps"), "7!");
  EXPECT_EQ(setting("--shard"), "zero1!") << "of the recipe";
  EXPECT_EQ(setting("--quiet"), "yes!");
  EXPECT_EQ(setting("--independent"), "no");
  EXPECT_EQ(setting("--help"), "none");
}

TEST(Options, APriceIsToldInAPage) {
  EXPECT_EQ(parse({"--report", "x", "--price", "trn1.32xlarge"}).price, "trn1.32xlarge");
  EXPECT_EQ(refusal({"--price", "7"}),
            "--price and --target-loss are told in a --report FILE.html");
  EXPECT_EQ(refusal({"--report", "x", "--price", "p9"}).find("--price p9 is neither dollars"), 0u);
  EXPECT_EQ(refusal({"--report", "x", "--target-loss", "2", "--scaling", "1"}),
            "--price and --target-loss are for one run, and --scaling does several");
  EXPECT_EQ(refusal({"--tensorboard", "x", "--scaling", "1"}),
            "--tensorboard is for one run, and --scaling does several");
}

TEST(Options, ATensorGroupHasOneBatch) {
  const Options options =
      forRanks(parse({"--tensor=2", "--global-batch=16", "--batch=2", "--heads=8"}), 8);
  EXPECT_EQ(options.tensor, 2);
  EXPECT_EQ(options.accumulate, 2);
  EXPECT_THROW(forRanks(options, 3), Failure);
  try {
    forRanks(parse({"--tensor=4", "--global-batch=6", "--batch=2"}), 8);
    FAIL() << "6 is no multiple of 4";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), 64);
    EXPECT_EQ(std::string(failure.what()),
              "--global-batch 6 is no multiple of 4 = 2 tensor groups x --batch 2; choose numbers "
              "that divide it");
  }
}

TEST(Options, ARecipesTensorGroupIsWhatFits) {
  const Options given = parse({"--recipe=pythia-6.9b-trn1", "--scale-down", "--vocab-size=300"});
  EXPECT_EQ(forRanks(given, 1).tensor, 1);
  EXPECT_EQ(forRanks(given, 6).tensor, 2);
  EXPECT_EQ(forRanks(given, 8).tensor, 4);  // of 4 heads
  EXPECT_NE(forRanks(given, 6).recipeNotes.find("--tensor is 2 here, which divides 6 ranks and 4 "
                                                "heads"),
            std::string::npos);
  EXPECT_EQ(forRanks(parse({"--recipe=neox-20b-trn1"}), 32).tensor, 8);
  EXPECT_THROW(forRanks(parse({"--recipe=neox-20b-trn1", "--tensor=8"}), 4), Failure);
}

TEST(Options, RefusesTensorGroupsThatCannotBe) {
  EXPECT_EQ(refusal({"--tensor=3"}),
            "--tensor 3 does not divide the 4 --heads, of which each rank takes some");
  EXPECT_NE(refusal({"--tensor=2", "--params=bf16", "--rounding=stochastic", "--vocab-size=301"})
                .find("--tensor 2 does not divide the vocabulary of 301"),
            std::string::npos);
  EXPECT_EQ(refusal({"--tensor=2", "--scaling=2,3"}), "--tensor 2 does not divide 3 ranks");
  EXPECT_EQ(refusal({"--tensor=512", "--heads=512", "--hidden=512"}),
            "--tensor 512 is more than the 256 rows of the embedding");
  try {
    forRanks(parse({"--tensor=4"}), 6);
    FAIL() << "4 does not divide 6";
  } catch (const Failure& failure) {
    EXPECT_EQ(std::string(failure.what()), "--tensor 4 does not divide 6 ranks");
  }
}

TEST(Options, SequencesAreCutAsTensorGroupsAre) {
  EXPECT_EQ(refusal({"--sequence-parallel"}),
            "--sequence-parallel is of tensor groups; fix: --tensor N, 2 or more");
  EXPECT_EQ(refusal({"--sequence-parallel", "--tensor=4", "--seq=126"}),
            "--sequence-parallel: --tensor 4 does not divide --seq 126, of which each rank takes a "
            "part; fix: --seq 128");
  EXPECT_NE(commonSettings(parse({"--sequence-parallel", "--tensor=2"})),
            commonSettings(parse({"--tensor=2"})));
}

TEST(Options, APipelineHasOneBatchAtATime) {
  const Options options =
      forRanks(parse({"--tensor=2", "--pipeline=2", "--global-batch=16", "--batch=2"}), 8);
  EXPECT_EQ(options.pipeline, 2);
  EXPECT_EQ(options.accumulate, 4);
  EXPECT_NE(commonSettings(options), commonSettings(parse({"--tensor=2", "--pipeline=4"})));
  const auto refusalFor = [](const Options& given, int ranks) -> std::string {
    try {
      forRanks(given, ranks);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), 64);
      return failure.what();
    }
    return "";
  };
  EXPECT_EQ(refusalFor(parse({"--pipeline=2"}), 3), "--pipeline 2 does not divide 3 ranks");
  EXPECT_EQ(refusalFor(options, 6), "--pipeline 2 does not divide 6 ranks / --tensor 2 = 3");
  EXPECT_EQ(refusalFor(parse({"--pipeline=4", "--global-batch=6", "--batch=2"}), 8),
            "--global-batch 6 is no multiple of 4 = 2 pipelines x --batch 2; choose numbers that "
            "divide it");
}

TEST(Options, VirtualStagesAreOfAPipelineAndItsBatchesTakeTurns) {
  EXPECT_EQ(refusal({"--virtual-stages=2"}),
            "--virtual-stages 2 are of the stages of a pipeline; fix: --pipeline N, 2 or more");
  EXPECT_EQ(refusal({"--pipeline=2", "--virtual-stages=3"}),
            "--virtual-stages 3 x --pipeline 2 is more than the 4 --layers, of which each virtual "
            "stage takes one or more; fix: lower one of them");
  EXPECT_EQ(refusal({"--partition=measured"}),
            "--partition measured is of the stages of a pipeline; fix: --pipeline N, 2 or more");
  EXPECT_EQ(refusal({"--eager"}),
            "--eager is of the stages of a pipeline; fix: --pipeline N, 2 or more");
  const auto given = [](const char* batches) {
    return forRanks(parse({"--pipeline=2", "--virtual-stages=2", batches}), 4);
  };
  EXPECT_EQ(given("--grad-accum=6").accumulate, 6);
  EXPECT_EQ(given("--global-batch=32").accumulate, 2);
  try {
    given("--grad-accum=3");
    FAIL() << "three batches, two of which take turns?";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), 64);
    EXPECT_EQ(
        std::string(failure.what()),
        "--virtual-stages 2: the 3 batches of a step are no multiple of --pipeline 2, so many "
        "of which go through a virtual stage at a time; fix: --grad-accum 4");
  }
  EXPECT_NE(commonSettings(given("--grad-accum=4")),
            commonSettings(forRanks(parse({"--pipeline=2", "--grad-accum=4"}), 4)));
}

TEST(Options, ARecipeMayHaveFlags) {
  const Options gptj = parse({"--recipe=gptj-smp"});
  EXPECT_TRUE(gptj.recompute);
  EXPECT_EQ(gptj.params, Params::kFloat16);
  EXPECT_EQ(gptj.tensor, 8);
  EXPECT_NE(gptj.recipeNotes.find("--recompute --tensor 8"), std::string::npos) << gptj.recipeNotes;
}

TEST(Options, ARecipesPipelineIsWhatFits) {
  const Options whole = parse({"--recipe=neox-20b-trn1"});
  EXPECT_EQ(forRanks(whole, 32).pipeline, 4);
  EXPECT_EQ(forRanks(whole, 16).pipeline, 2);
  EXPECT_EQ(forRanks(whole, 8).pipeline, 1);
  const Options small = forRanks(parse({"--recipe=neox-20b-trn1", "--scale-down"}), 16);
  EXPECT_EQ(small.tensor, 4);
  EXPECT_EQ(small.pipeline, 2);
  EXPECT_NE(small.recipeNotes.find("--pipeline is 2 here, as 16 ranks and 2 layers can have"),
            std::string::npos);
}

TEST(Options, RefusesPipelinesThatCannotBe) {
  EXPECT_EQ(refusal({"--pipeline=5"}),
            "--pipeline 5 is more than the 4 --layers, of which each stage takes one or more; fix: "
            "--pipeline 4 at most");
  EXPECT_NE(refusal({"--pipeline=2", "--model=gptneo", "--reproducible"})
                .find("in an order that --reproducible cannot keep"),
            std::string::npos);
  EXPECT_NE(refusal({"--pipeline=2", "--model=bert", "--params=bf16", "--rounding=stochastic"})
                .find("would round them differently"),
            std::string::npos);
}

TEST(Options, RefusesRecipesThatCannotBe) {
  EXPECT_EQ(refusal({"--scale-down"}), "--scale-down is for a --recipe");
  EXPECT_EQ(refusal({"--recipe", "bert"}),
            "there is no recipe bert; there are bert-large-phase1, bert-1.5b-dl1, "
            "pythia-6.9b-trn1, neox-20b-trn1, gptj-smp");
}

TEST(Options, RefusesModelsThatCannotBe) {
  EXPECT_EQ(refusal({"--model", "bert-large", "--seq", "513"}),
            "--seq 513 is longer than the 512 positions of bert-large");
  EXPECT_EQ(
      refusal({"--model", "neox", "--heads", "64"}),
      "--hidden 256 / --heads 64 is not a multiple of 8: a quarter of each head turns in pairs");
  EXPECT_EQ(
      refusal({"--model", "gptj", "--heads", "64"}),
      "--hidden 256 / --heads 64 is not a multiple of 8: a quarter of each head turns in pairs");
  EXPECT_EQ(refusal({"--model", "roberta", "--vocab", "x"}),
            "--vocab is for BERT, not for roberta");
  EXPECT_EQ(refusal({"--independent", "--export", "x"}),
            "--independent ranks would overwrite each other's files; leave out --save, --resume, "
            "--start-from and --export");
  EXPECT_EQ(refusal({"--rotary", "zero-frequency"}), "--rotary is for NeoX, not for gpt");
  EXPECT_EQ(refusal({"--vocab", "x"}), "--vocab is for BERT, not for gpt");
  EXPECT_EQ(refusal({"--model", "gpt5"}).find("there is no model gpt5"), 0u);
}

TEST(Options, ATextOrTokensAreLearned) {
  EXPECT_EQ(parse({}).split, (std::vector<double>{1, 0}));
  EXPECT_EQ(parse({"--eval-every", "9"}).split, (std::vector<double>{95, 5}));
  EXPECT_EQ(parse({"--split", "969,30,1"}).split, (std::vector<double>{969, 30, 1}));
  EXPECT_EQ(parse({"--vocab-size", "5000"}).shape.vocabulary, 5000);
  EXPECT_EQ(parse({"--megatron", "x"}, {}).megatron, "x");
  EXPECT_EQ(refusal({"--megatron", "x"}).find("what is to be learned?"), 0u);
  EXPECT_EQ(refusal({}, {}).find("what is to be learned?"), 0u);
  EXPECT_EQ(refusal({"--megatron", "x", "--model", "bert"}, {}).find("--megatron has"), 0u);
  EXPECT_EQ(refusal({"--megatron", "x", "--seed", "4294967296"}, {}),
            "--megatron: its order takes a --seed below 2^32");
  EXPECT_EQ(refusal({"--vocab-size", "255"}),
            "--vocab-size 255 is less than the 256 bytes that a text is made of");
  for (const char* split : {"0", "0,1", "1,0", "6,2,1,1"})
    EXPECT_EQ(refusal({"--eval-every", "1", "--split", split}).find("--split "), 0u) << split;
}

TEST(Options, AGlobalBatchIsDividedAmongRanks) {
  const Options options = parse({"--global-batch", "24", "--batch", "2"});
  EXPECT_EQ(forRanks(options, 3).accumulate, 4);
  EXPECT_EQ(forRanks(parse({"--grad-accum", "5"}), 3).accumulate, 5);
  EXPECT_THROW(forRanks(options, 5), Failure);
  EXPECT_EQ(refusal({"--global-batch", "8", "--grad-accum", "2"}).find("--global-batch says"), 0u);
  EXPECT_EQ(refusal({"--global-batch", "8", "--scaling", "2"}).find("--scaling keeps"), 0u);
}

TEST(Options, RefusesWhatCannotBe) {
  EXPECT_EQ(refusal({"--hidden", "100", "--heads", "3"}), "--heads 3 does not divide --hidden 100");
  EXPECT_NE(refusal({"--steps", "0"}), "accepted");
  EXPECT_NE(refusal({"--batch", "-1"}), "accepted");
  const auto isTooLarge = [](const char* option, const char* word) {
    return refusal({option, word}).find(std::string(word) + "' is too large") != std::string::npos;
  };
  for (const char* option : {"--steps", "--seconds", "--seed"})
    EXPECT_TRUE(isTooLarge(option, "99999999999999999999")) << option;
  for (const char* option : {"--steps", "--seconds", "--seed", "--lr"})
    EXPECT_TRUE(isTooLarge(option, "1e400")) << option;
  EXPECT_FALSE(isTooLarge("--lr", "1e30"));
  EXPECT_NE(refusal({"--dtype", "fp8"}), "accepted");
  EXPECT_NE(refusal({"--scaling", "1,0"}), "accepted");
  EXPECT_NE(refusal({"--scaling", "1,2", "--ranks", "2"}), "accepted");
  EXPECT_EQ(refusal({"--csv", "curve", "--json", "curve"}),
            "--json curve is the file of --csv, too; fix: name another");
  EXPECT_EQ(refusal({"--csv", "/dev/null", "--json", "/dev/null"}), "accepted");
  EXPECT_NE(refusal({"--no-such-flag"}).find("--no-such-flag"), std::string::npos);
}

TEST(Options, RanksShareByNumbersThatDivideThem) {
  const auto refusalFor = [](const char* degrees, int ranks) {
    try {
      forRanks(parse({"--shard", degrees, "--tensor", "2"}), ranks);
      return std::string("accepted");
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), 64);
      return std::string(failure.what());
    }
  };
  for (const char* degrees : {"1,2,2", "0,0,0", "2,2,4", "mics", "zero3"})
    EXPECT_EQ(refusalFor(degrees, 8), "accepted");
  EXPECT_EQ(refusalFor("mics", 10), "accepted");
  EXPECT_EQ(refusalFor("2,1,4", 8),
            "--shard 2,1,4 on 4 data-parallel ranks: each number must divide the next, and the "
            "last one the ranks; 0 is all of them");
  for (const char* degrees : {"1,1,3", "8,8,8", "0,1,1", "-1,1,1"})
    EXPECT_NE(refusalFor(degrees, 8), "accepted") << degrees;
  EXPECT_EQ(parseDegrees("mics", 9, 9).state, 3);
  EXPECT_EQ(parseDegrees("mics", 7, 7).state, 1);
}

TEST(Options, AClassificationIsOfSentences) {
  const Options options =
      parse({"--model=bert", "--task=classification", "--classes=3", "--valid=dev.tsv"});
  EXPECT_EQ(options.shape.classes, 3);
  EXPECT_TRUE(evaluatesSometimes(options));
  EXPECT_EQ(parse({"--model=bert", "--classes=3"}).shape.classes, 0);
  EXPECT_EQ(refusal({"--task=classification"}),
            "--task classification is for BERT and RoBERTa, not for gpt");
  EXPECT_EQ(refusal({"--task=classification", "--model=bert", "--seq=1"}),
            "--task classification: --seq 1 has no room for a sentence");
  EXPECT_EQ(refusal({"--task=classification", "--model=bert", "--pipeline=2", "--virtual-stages=2",
                     "--layers=4", "--grad-accum=2"}),
            "--task classification: scores go through each stage once; fix: leave out "
            "--virtual-stages");
  EXPECT_EQ(refusal({"--model=bert", "--valid=dev.tsv"}),
            "--valid is for --task classification; other data is shared out by --split");
  EXPECT_NE(commonSettings(parse({"--model=bert", "--task=classification"})),
            commonSettings(parse({"--model=bert"})));
}

TEST(Options, ALossScaleIsForFp16) {
  const Options options = parse({"--params=fp16", "--loss-scale-window=9"});
  EXPECT_EQ(options.params, Params::kFloat16);
  EXPECT_EQ(options.lossScale, 0);
  EXPECT_EQ(options.initialLossScale, 65536);
  EXPECT_EQ(options.lossScaleWindow, 9);
  EXPECT_EQ(refusal({"--loss-scale=8"}),
            "--loss-scale is for --params fp16, whose gradients are small");
  EXPECT_EQ(refusal({"--params=fp16", "--rounding=stochastic"}),
            "--rounding stochastic is for --params bf16 or bf16-only");
  EXPECT_EQ(refusal({"--params=fp16", "--dtype=bf16"}),
            "--dtype bf16 is for fp32 weights; --params of 16 bits need none");
  EXPECT_NE(refusal({"--params=fp16", "--initial-loss-scale=0"}), "accepted");
}

TEST(Options, CommonSettingsTellRunsApart) {
  const std::string settings = commonSettings(parse({}));
  EXPECT_EQ(settings, commonSettings(parse({"--csv", "x", "--log-every", "3"})));
  for (const char* change :
       {"--seed=9", "--batch=9", "--lr=9", "--wire=bf16", "--seq=9", "--bucket-mb=9",
        "--params=fp16", "--initial-loss-scale=4", "--model=bert", "--layers=2"}) {
    EXPECT_NE(settings, commonSettings(parse({change}))) << change;
  }
}

}  // namespace
}  // namespace weft::train
