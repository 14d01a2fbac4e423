// SPDX-License-Identifier: Apache-2.0
// The curves of weft-train beside those of a serial run in plain libtorch.
#include "tests/train/reference.h"

#include <cmath>
#include <numeric>

#include "tools/train/batch_source.h"
#include "tools/train/corpus.h"
#include "tools/train/model.h"

namespace weft::train {
namespace {

// Layers on two ranks: one such group, and two that are data-parallel.
TEST_F(Reference, SharedLayersLearnAsThoseOfOneProcess) {
  const std::string flags = "--steps 30 --heads 4 --batch ";
  expectToFollow(serial(flags + "4 --ranks 2"), flags + "4 --ranks 4 --tensor 2 --shard zero3");
  const std::string neox = "--model neox " + flags + "4 --ranks ";
  expectToFollow(serial(neox + "1"), neox + "2 --tensor 2");
  const std::string cut = "--tensor 2 --sequence-parallel ";
  expectToFollow(serial(flags + "4"), flags + "4 --shard zero1 --ranks 2 " + cut);
  const std::string bert = "--model bert --steps 30 --heads 4 --batch ";
  expectToFollow(serial(bert + "4"), bert + "2 --ranks 4 --pipeline 2 --grad-accum 2 " + cut);
}

// Layers in two stages: two such pipelines with three batches at a time, and one of tensor groups.
TEST_F(Reference, APipelineLearnsAsOneProcess) {
  expectToFollow(serial("--steps 30 --batch 6 --ranks 2"),
                 "--steps 30 --batch 2 --grad-accum 3 --ranks 4 --pipeline 2 --shard zero3");
  const std::string neox = "--model neox --steps 30 --heads 4 --batch ";
  expectToFollow(serial(neox + "4"), neox + "2 --grad-accum 2 --ranks 4 --tensor 2 --pipeline 2");
  const std::string tied = "--model bert --layers 4 --steps 30 --batch ";
  expectToFollow(serial(tied + "4 --ranks 2"), tied +
                                                   "1 --grad-accum 4 --ranks 4 --pipeline 2 "
                                                   "--virtual-stages 2 --shard zero3");
}

TEST_F(Reference, WhateverIsShardedAdamWIsThatOfOneProcess) {
  const std::string flags = "--steps 30 --batch 2 --ranks 4 --shard ";
  const Curve right = serial(flags + "none");
  EXPECT_LT(right.losses.back(), right.losses.front() - 1);
  for (const char* scheme : {"none", "mics"}) {  // others have the bits of none: see runs_test.cpp
    expectToFollow(right, flags + scheme);
  }
}

TEST_F(Reference, AdamWThatIsWrongIsSeen) {
  const std::string flags = "--steps 30 --batch 4 --ranks 2 --shard zero1 ";
  const Curve ours = expectToFollow(flags);
  for (const char* wrong : {"--beta1 0.901", "--beta2 0.951", "--weight-decay 0.09", "--clip 0",
                            "--lr 2.002e-3", "--warmup 6"}) {
    expectDeparted(ours, serial(flags + wrong), wrong);
  }
  expectDeparted(ours, serial(flags, {.epsilon = 1e-6}), "epsilon");
  expectDeparted(ours, serial(flags, {.decayAll = true}), "biases and embeddings decay");
  const Departure uncorrected{.biasCorrection = false, .trust = false};
  expectDeparted(ours, serial(flags + "--optimizer lamb", uncorrected), "no bias correction");
}

TEST_F(Reference, AccumulationClippingAndDecayAreThoseOfOneProcess) {
  for (const char* flags :
       {"--batch 2 --grad-accum 2 --shard zero2", "--batch 4 --clip 0 --shard zero3 --reproducible",
        "--batch 4 --clip 0.3 --weight-decay 1 --shard zero1"}) {
    expectToFollow(fmt::format("--steps 30 --ranks 2 {}", flags));
  }
}

TEST_F(Reference, LambIsTheFormulaOnWholeTensors) {
  const std::string flags = "--steps 30 --batch 4 --ranks 2 --optimizer lamb --lr 0.05 --shard ";
  const Curve ours = expectToFollow(flags + "none");
  expectToFollow(flags + "zero1");
  expectDeparted(ours, serial(flags + "none --beta2 0.951"), "beta2");
  expectDeparted(ours, serial(flags + "none", {.epsilon = 1e-6}), "epsilon");
  expectDeparted(ours, serial(flags + "none", {.biasCorrection = false}), "no bias correction");
  expectDeparted(ours, serial(flags + "none", {.trust = false}), "no trust ratio");
  expectDeparted(ours, serial(flags + "none", {.decayAll = true}), "biases and embeddings decay");
}

TEST_F(Reference, LansIsTheFormulaOnWholeTensors) {
  const std::string flags = "--steps 30 --batch 4 --ranks 2 --optimizer lans --lr 0.05 --shard ";
  const Curve ours = expectToFollow(flags + "zero1");
  expectToFollow(flags + "zero3");
  expectDeparted(ours, serial(flags + "none --beta2 0.951"), "beta2");
  expectDeparted(ours, serial(flags + "none", {.epsilon = 1e-6}), "epsilon");
  expectDeparted(ours, serial(flags + "none", {.normalized = false}), "gradients as they are");
  expectDeparted(ours, serial(flags + "none", {.nesterov = false}), "no Nesterov");
}

// Norms of parameters are those of all parts of a tensor group, and of an embedding that two stages have.
TEST_F(Reference, LambAndLansLearnInParts) {
  const std::string lamb = "--steps 30 --heads 4 --optimizer lamb --lr 0.05 --batch ";
  expectToFollow(serial(lamb + "8"), lamb + "2 --grad-accum 2 --ranks 4 --shard zero1 --tensor 2 ");
  const std::string lans = "--steps 30 --heads 4 --model bert --optimizer lans --lr 0.02 --batch ";
  expectToFollow(serial(lans + "8"),
                 lans + "4 --grad-accum 2 --ranks 4 --tensor 2 --pipeline 2 --sequence-parallel");
}

// Which says of the formula that all but its trust ratio is right.
TEST_F(Reference, LambWithoutItsTrustRatioIsLibtorchsAdamW) {
  const std::string flags = "--steps 30 --batch 8 ";
  const Curve adamW = serial(flags);
  const Curve lamb = serial(flags + "--optimizer lamb", {.trust = false});
  EXPECT_LT(distance(adamW.losses, lamb.losses), kLoss);
  EXPECT_LT(distance(adamW.norms, lamb.norms), kNorm);
}

TEST_F(Reference, GptjGptNeoAndRobertaAreThoseOfOneProcess) {
  for (const char* model : {"gptj", "gptneo", "roberta"}) {
    const std::string flags =
        fmt::format("--steps 5 --batch 4 --lr 0.01 --ranks 2 --shard zero3 --model {}", model);
    const Curve ours = expectToFollow(serial(flags), flags);
    Options other = optionsOf(flags);
    other.shape.window = 32;  // all of a sample
    if (other.shape.family == Family::kGptNeo)
      expectDeparted(ours, serialCurve(other, {}), "every block looks back on all");
  }
}

// By masks that a second Philox draws for one process, whoever has the samples and the heads.
TEST_F(Reference, DropoutIsThatOfOneProcess) {
  for (const char* flags :
       {"--model gpt --ranks 2 --tensor 2 --sequence-parallel --batch 4 --recompute",
        "--model neox --ranks 2 --batch 2 --grad-accum 2",
        "--model bert --ranks 2 --pipeline 2 --batch 2 --grad-accum 3 "
        "--recompute"}) {
    const std::string dropping = fmt::format("--steps 3 --seed 77 --dropout 0.2 {}", flags);
    Options serial = optionsOf(dropping);
    serial.ranks = std::max(serial.ranks, 1) / static_cast<int>(serial.tensor * serial.pipeline);
    const Curve ours = expectToFollow(serialCurve(serial, {}), dropping);
    serial.dropout = 0.21;
    expectDeparted(ours, serialCurve(serial, {}), "more is dropped");
  }
}

// The loss and the norm of the first step, without ranks.
TEST_F(Reference, EveryFamilyDropsWhereItsAuthorsDo) {
  for (const char* model : {"bert", "gptj", "gptneo", "roberta"}) {
    const Options options =
        optionsOf(fmt::format("--steps 1 --batch 4 --dropout 0.2 --model {}", model));
    const Curve right = serialCurve(options, {});
    std::vector<std::vector<float>> weights, gradients;
    std::vector<ParameterMemory> memory;
    for (const Parameter& parameter : parametersOf(options.shape).list) {
      weights.emplace_back(parameter.size());
      gradients.emplace_back(parameter.size());
      memory.push_back({weights.back().data(), gradients.back().data()});
    }
    Model ours(options.shape, Compute::kAsWeights, Element::kFloat32, Element::kFloat32, memory);
    ours.initialize(options.seed);
    ours.dropOut(options.dropout, options.seed);
    const std::vector<uint8_t> text = readCorpus(options.data);
    EXPECT_NEAR(ours.forward(makeBatchSource(options, text, 4)->batch(0, 0, 4)) / right.losses[0],
                1, kFirst)
        << model;
    ours.backward(1.0);
    double squares = 0;
    for (const auto& each : gradients)
      squares = std::inner_product(each.begin(), each.end(), each.begin(), squares);
    EXPECT_NEAR(std::sqrt(squares) / right.norms[0], 1, kFirst) << model;
  }
}

// At rates where training is stable: others double a rounding error every other step.
TEST_F(Reference, SgdIsThatOfOneProcess) {
  const std::string flags =
      "--steps 30 --batch 4 --ranks 2 --optimizer sgd --lr 0.05 --weight-decay 0.01 ";
  const Curve ours = expectToFollow(flags + "--shard zero1");
  for (const char* wrong : {"--momentum 0.89", "--weight-decay 0.009", "--clip 1.01"}) {
    expectDeparted(ours, serial(flags + wrong), wrong);
  }
  expectToFollow(flags + "--momentum 0 --clip 0");
}

TEST_F(Reference, BertAndNeoxAreThoseOfOneProcess) {
  for (const char* model : {"bert", "neox"}) {
    expectToFollow(fmt::format("--steps 30 --batch 4 --ranks 2 --shard zero1 --model {}", model));
  }
}

}  // namespace
}  // namespace weft::train
