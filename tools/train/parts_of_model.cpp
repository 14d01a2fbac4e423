// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parts_of_model.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

#include "tools/train/failure.h"
#include "tools/train/parameters.h"

namespace weft::train {
namespace {

// What does not depend on the number of ranks.
void validateTensor(const Options& o) {
  const std::string reason = fmt::format("--tensor {}", o.tensor);
  const auto refuse = [&](const std::string& why) {
    throw Failure(Exit::kUsage, fmt::format("{} {}", reason, why));
  };
  if (o.shape.heads % o.tensor != 0)
    refuse(fmt::format("does not divide the {} --heads, of which each rank takes some",
                       o.shape.heads));
  if (o.shape.vocabulary < o.tensor)
    refuse(fmt::format("is more than the {} rows of the embedding", o.shape.vocabulary));
  if (o.stochastic && o.shape.vocabulary % o.tensor != 0)
    refuse(
        fmt::format("does not divide the vocabulary of {}, and then --rounding stochastic would "
                    "round copies of a weight differently; choose another --vocab-size",
                    o.shape.vocabulary));
}

void validateSequence(const Options& o) {
  if (o.tensor == 1)
    throw Failure(Exit::kUsage,
                  "--sequence-parallel is of tensor groups; fix: --tensor N, 2 or more");
  if (o.length % o.tensor == 0) return;
  throw Failure(
      Exit::kUsage,
      fmt::format("--sequence-parallel: --tensor {} does not divide --seq {}, of which each "
                  "rank takes a part; fix: --seq {}",
                  o.tensor, o.length, (o.length / o.tensor + 1) * o.tensor));
}

// Copies of a tied embedding in two stages are stepped in each, and their gradients summed once a step.
void validatePipeline(const Options& o) {
  const std::string reason = fmt::format("--pipeline {}", o.pipeline);
  const auto refuse = [&](const std::string& why) {
    throw Failure(Exit::kUsage, fmt::format("{} {}", reason, why));
  };
  if (o.pipeline > o.shape.layers)
    refuse(
        fmt::format("is more than the {} --layers, of which each stage takes one or more; fix: "
                    "--pipeline {} at most",
                    o.shape.layers, o.shape.layers));
  if (parametersOf(o.shape).firstLayer != FirstLayer::kIsFirstAndLast) return;
  if (o.reproducible)
    refuse(
        fmt::format("sums the gradients of {}'s embedding, which is its output matrix as well, "
                    "in an order that --reproducible cannot keep; fix: leave one out, or take a "
                    "model whose embedding is not tied",
                    o.model));
  if (o.stochastic)
    refuse(
        fmt::format("has {}'s embedding, which is its output matrix as well, in two stages, and "
                    "--rounding stochastic would round them differently; fix: --rounding nearest, "
                    "or a model whose embedding is not tied",
                    o.model));
}

void validateVirtualStages(const Options& o) {
  const std::string reason = fmt::format("--virtual-stages {}", o.virtualStages);
  if (o.pipeline == 1)
    throw Failure(Exit::kUsage,
                  reason + " are of the stages of a pipeline; fix: --pipeline N, 2 or more");
  if (o.virtualStages > o.shape.layers / o.pipeline)
    throw Failure(Exit::kUsage,
                  fmt::format("{} x --pipeline {} is more than the {} --layers, of which each "
                              "virtual stage takes one or more; fix: lower one of them",
                              reason, o.pipeline, o.shape.layers));
}

// A recipe's degrees are those of its machines: here they are what fits.
void lowerTensor(Options& o, int ranks) {
  const int64_t wanted = o.tensor;
  o.tensor =
      std::gcd(std::gcd(wanted, int64_t{ranks}), std::gcd(o.shape.heads, o.shape.vocabulary));
  if (o.tensor != wanted)
    o.recipeNotes += fmt::format("; --tensor is {} here, which divides {} ranks and {} heads",
                                 o.tensor, ranks, o.shape.heads);
}

void lowerPipeline(Options& o, int ranks) {
  const int64_t wanted = o.pipeline, groups = ranks / o.tensor;
  while (o.pipeline > o.shape.layers || groups % o.pipeline != 0 || wanted % o.pipeline != 0)
    --o.pipeline;
  if (o.pipeline != wanted)
    o.recipeNotes += fmt::format("; --pipeline is {} here, as {} ranks and {} layers can have",
                                 o.pipeline, ranks, o.shape.layers);
}

}  // namespace

void validateParts(const Options& options) {
  if (options.tensor > 1 && !options.tensorIsRecipes) validateTensor(options);
  if (options.sequenceParallel && !options.tensorIsRecipes) validateSequence(options);
  if (options.pipeline > 1 && !options.pipelineIsRecipes) validatePipeline(options);
  if (options.virtualStages > 1 && !options.pipelineIsRecipes) validateVirtualStages(options);
  for (const auto& [isGiven, flag] :
       {std::pair{options.partitionIsMeasured, "--partition measured"},
        std::pair{options.eager, "--eager"}})
    if (isGiven && options.pipeline == 1)
      throw Failure(
          Exit::kUsage,
          fmt::format("{} is of the stages of a pipeline; fix: --pipeline N, 2 or more", flag));
}

Options withPartsFor(Options o, int ranks) {
  if (o.tensorIsRecipes) lowerTensor(o, ranks);
  if (ranks % o.tensor != 0)
    throw Failure(Exit::kUsage,
                  fmt::format("--tensor {} does not divide {} ranks", o.tensor, ranks));
  if (o.sequenceParallel) validateSequence(o);
  if (o.pipelineIsRecipes) lowerPipeline(o, ranks);
  if (o.virtualStages > 1) validateVirtualStages(o);
  if (ranks / o.tensor % o.pipeline == 0) return o;
  const std::string groups =
      o.tensor == 1 ? "" : fmt::format(" / --tensor {} = {}", o.tensor, ranks / o.tensor);
  throw Failure(Exit::kUsage,
                fmt::format("--pipeline {} does not divide {} ranks{}", o.pipeline, ranks, groups));
}

int fewestRanks(const Options& o) {
  const int64_t tensor = o.tensorIsRecipes ? 1 : o.tensor;
  return static_cast<int>(tensor * (o.pipelineIsRecipes ? 1 : o.pipeline));
}

void validateTurns(const Options& o) {
  if (o.virtualStages == 1 || o.accumulate % o.pipeline == 0) return;
  throw Failure(Exit::kUsage,
                fmt::format("--virtual-stages {}: the {} batches of a step are no multiple of "
                            "--pipeline {}, so many of which go through a virtual stage at a time; "
                            "fix: --grad-accum {}",
                            o.virtualStages, o.accumulate, o.pipeline,
                            (o.accumulate / o.pipeline + 1) * o.pipeline));
}

ModelPart anyPartOf(const Options& o) {
  return {{0, o.tensor}, {0, o.pipeline, o.virtualStages, o.blocks, o.eager}};
}

const char* copiesInWords(const Options& o) {
  if (o.pipeline > 1) return "pipelines";
  return o.tensor > 1 ? "tensor groups" : "ranks";
}

}  // namespace weft::train
