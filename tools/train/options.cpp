// SPDX-License-Identifier: Apache-2.0
#include "tools/train/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "perf/common/command_line.h"
#include "tools/train/choice_option.h"
#include "tools/train/degrees.h"
#include "tools/train/failure.h"
#include "tools/train/loss_scale.h"
#include "tools/train/options_check.h"
#include "tools/train/parallel_options.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/recipes.h"
#include "tools/train/reports/price.h"

namespace weft::train {
namespace {

constexpr const char* kAbout =
    "Trains GPT, GPT-J, GPT-Neo, GPT-NeoX, BERT or RoBERTa on the bytes of any text, "
    "data-parallel, "
    "tensor-parallel and in a pipeline over weft.\n"
    "The ranks are those that a launcher started (mpirun, srun, torchrun, WEFT_RANK and friends), "
    "or\n"
    "--ranks N local ones, or this process alone.";

std::vector<std::string> instanceNames() {
  std::vector<std::string> names;
  for (const Price& each : instancePrices()) names.push_back(each.name);
  return names;
}

void addModel(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, fmt::format("One of {}", fmt::join(modelNames(), ", ")));
  app.add_option("--layers", options.layers, "Transformer blocks; 0 = the model's")
      ->check(CLI::Range(0, 10000));
  app.add_option("--hidden", options.hidden, "Width of the model; 0 = the model's")
      ->check(tools::natural());
  app.add_option("--heads", options.heads, "Attention heads; divide --hidden; 0 = the model's")
      ->check(tools::natural());
  app.add_option("--seq", options.length, "Tokens in a sequence; tokens are bytes, but for --vocab")
      ->check(tools::positive());
  app.add_option("--vocab", options.vocabulary,
                 "BERT: a vocab.txt of word pieces, instead of bytes");
  app.add_option("--vocab-size", options.vocabularySize, "Rows of the embedding; 0 = the model's")
      ->check(tools::natural());
  addChoice(app, "--rotary", options.rotary,
            {{"partial", Rotary::kPartial}, {"zero-frequency", Rotary::kZeroFrequency}},
            "NeoX: turn a quarter of each head, or all of it and most pairs by nothing");
}

void addRecipe(CLI::App& app, Options& options) {
  app.add_option("--recipe", options.recipe,
                 fmt::format("Of a published job, what no other option says: {}",
                             fmt::join(recipeNames(), ", ")));
  app.add_flag("--scale-down", options.scaleDown,
               "With --recipe: a tiny model of the same family, and 20 small steps");
}

// What the command line leaves out.
void applyRecipe(CLI::App& app, Options& options) {
  if (options.recipe.empty()) {
    if (options.scaleDown) throw Failure(Exit::kUsage, "--scale-down is for a --recipe");
    return;
  }
  const Recipe chosen = recipe(options.recipe, options.scaleDown);
  options.recipeNotes = chosen.name + ":";
  for (const auto& [name, value] : chosen.settings) {
    CLI::Option& option = *app.get_option(name);
    const bool isOther = (name == "--grad-accum" && app.count("--global-batch") > 0) ||
                         (name == "--global-batch" && app.count("--grad-accum") > 0);
    if (option.count() > 0 || isOther) continue;
    option.add_result(value);
    option.run_callback();
    if (name == "--tensor") options.tensorIsRecipes = true;
    if (name == "--pipeline") options.pipelineIsRecipes = true;
    options.recipeNotes += " " + name + (value == Recipe::kFlag ? "" : " " + value);
  }
  options.recipeNotes += "; " + chosen.lacks;
}

void addTraining(CLI::App& app, Options& options) {
  app.add_option(
      "--data", options.data,
      "Text to learn: a file, or a folder with all files below it; for BERT also HDF5 shards of "
      "masked samples, a file .hdf5 or .h5 or the folder that has them");
  app.add_option("--readers", options.readers,
                 "Of HDF5 files: their order, and what is learned, is that of so many ranks of the "
                 "published "
                 "loaders; 0 = of the data-parallel ranks, with --reproducible of one")
      ->check(tools::natural());
  app.add_option("--megatron", options.megatron,
                 "Tokens to learn in place of --data: PREFIX of PREFIX.bin and PREFIX.idx, in the "
                 "order of Megatron's GPT dataset of the same --seed, --split, --seq and samples");
  addChoice(app, "--task", options.classifies, {{"pretraining", false}, {"classification", true}},
            "What BERT and RoBERTa learn: hidden words, or the classes of sentences, --data and "
            "--valid FILE.tsv of SST-2's lines: sentence, tab, label");
  app.add_option("--classes", options.classes, "Of --task classification: labels are 0, 1, ...")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20));
  app.add_option("--valid", options.valid,
                 "Of --task classification: evaluate on all of this file, each --eval-every steps "
                 "and at the end");
  app.add_option("--split", options.split,
                 "Shares of training and validation, as Megatron's, e.g. 969,30,1; default 1, with "
                 "--eval-every 95,5")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("")
      ->check(tools::natural(std::numeric_limits<double>::infinity()));
  app.add_option("--eval-every", options.evalEvery,
                 "Steps between evaluations of the validation share; 0 = never")
      ->check(tools::natural());
  app.add_option("--eval-batches", options.evalBatches,
                 "Of an evaluation, each as large as those of a step; the same ones each time")
      ->check(tools::positive());
  app.add_option("--steps", options.steps, "Optimizer steps")->check(tools::positive());
  app.add_option("--seconds", options.seconds,
                 "Stop after this time even if steps are left; 0 = never")
      ->check(tools::natural());
  app.add_option("--seed", options.seed, "Same seed, same settings, same bits")
      ->check(tools::natural(0x1p64));
  app.add_option("--batch", options.batch, "Sequences of one rank at a time")
      ->check(tools::positive());
  app.add_option("--accumulate,--grad-accum", options.accumulate, "Batches of one rank in a step")
      ->check(tools::positive());
  app.add_option("--global-batch", options.globalBatch,
                 "Sequences of all ranks in a step, in place of --grad-accum; 0 = what it comes to")
      ->check(tools::natural());
  app.add_option("--lr", options.learningRate, "Peak learning rate")
      ->check(tools::natural(std::numeric_limits<double>::infinity()));
  app.add_option("--warmup", options.warmup, "Steps of linear warm-up")->check(tools::natural());
  app.add_option("--hold", options.hold, "Steps of the peak after it")->check(tools::natural());
  addChoice(app, "--decay", options.decay,
            {{"cosine", Decay::kCosine}, {"linear", Decay::kLinear}, {"poly", Decay::kPoly}},
            "Then: half a cosine to a tenth, a line to 0, or the square root of that line");
  app.add_option("--weight-decay", options.weightDecay,
                 "Of matrices; biases, LayerNorms and untied GPT's embeddings have none")
      ->check(tools::natural());
  app.add_option("--beta1", options.beta1, "Not SGD's")->check(tools::within(0.0, 0.9999));
  app.add_option("--beta2", options.beta2, "Not SGD's")->check(tools::within(0.0, 0.99999));
  app.add_option("--epsilon", options.epsilon, "Not SGD's; beside roots of the second moment")
      ->check(tools::within(1e-30, 1.0));
  app.add_option("--clip", options.clip, "Largest norm of the gradients; 0 = any")
      ->check(tools::natural());
  app.add_option("--dropout", options.dropout,
                 "Share that is dropped in training of the embedding, of attention weights and of "
                 "what attention and MLP give")
      ->check(tools::within(0.0, 0.99));
  app.add_flag("--recompute", options.recompute,
               "Keep of each block what goes into it alone, and compute the block again in "
               "backward: less memory, the same bits");
  addChoice(app, "--offload", options.offload, {{"none", false}, {"activations", true}},
            "Put what --recompute keeps, which this includes, into a file until backward: no "
            "activations but those of one block stay in memory, and the bits are the same");
  app.add_option("--offload-dir", options.offloadFolder,
                 "Folder of that file, on a disk; it has no name there, and goes with the rank");
  app.add_option("--optimizer", options.optimizer, "What steps the weights")
      ->check(CLI::IsMember({"adamw", "lamb", "lans", "sgd"}));
  app.add_option("--momentum", options.momentum, "SGD's")->check(tools::within(0.0, 0.9999));
}

void addLossScale(CLI::App& app, Options& options) {
  app.add_option("--loss-scale", options.lossScale,
                 "Of --params fp16: losses are multiplied with it, and steps whose gradients "
                 "overflow are skipped; 0 = halved then, and doubled after --loss-scale-window "
                 "steps without")
      ->check(tools::natural(LossScale::kMost));
  app.add_option("--initial-loss-scale", options.initialLossScale, "What it begins with")
      ->check(tools::within(LossScale::kLeast, LossScale::kMost));
  app.add_option("--loss-scale-window", options.lossScaleWindow, "Good steps before it doubles")
      ->check(tools::positive());
}

void addPrecision(CLI::App& app, Options& options) {
  const Choices<bool> isBf16{{"fp32", false}, {"bf16", true}};
  addChoice(app, "--dtype", options.bf16, isBf16, "Of matrix products over fp32 weights");
  addChoice(app, "--params", options.params,
            {{"fp32", Params::kFloat32},
             {"bf16", Params::kBfloat16},
             {"bf16-only", Params::kBfloat16Only},
             {"fp16", Params::kFloat16}},
            "Weights of the model, and what it computes with: bf16 and fp16 ones are rounded from "
            "fp32 weights in the optimizer's state, bf16-only ones are all that there is");
  addLossScale(app, options);
  addChoice(app, "--rounding", options.stochastic, {{"nearest", false}, {"stochastic", true}},
            "Of bf16 weights");
  addChoice(app, "--wire", options.wireBf16, isBf16, "Of gradients while they travel");
}

void addCommunication(CLI::App& app, Options& options) {
  app.add_option("--ranks", options.ranks, "Start this many ranks on this machine")
      ->check(CLI::Range(1, 4096));
  app.add_option("--threads", options.threads,
                 "Compute threads of one rank; 0 = cores / local ranks")
      ->check(tools::natural());
  app.add_option("--bucket-mb", options.bucketMb,
                 "Gradients are reduced in buckets of this many MB of fp32")
      ->check(tools::positive());
  app.add_option(
      "--shard", options.shard,
      "What the ranks share: none, zero1 (optimizer state), zero2 (and gradients), zero3 "
      "(and weights), mics (all, in groups), or K,L,M ranks for weights, gradients, state");
  app.add_flag(
      "--reproducible", options.reproducible,
      "The same bits for any number of ranks, at equal global batch, --batch and --threads (of "
      "which one is the default then). Gradients travel as often in a step as the largest "
      "odd divisor of --grad-accum says");
  app.add_flag("--no-overlap", options.noOverlap, "Reduce only after backward, for comparison");
  app.add_flag("--independent", options.independent,
               "Ranks train without each other, for comparison");
}

void addOutput(CLI::App& app, Options& options) {
  app.add_option("--log-every", options.logEvery, "Print every so many steps")
      ->check(tools::positive());
  app.add_option(
      "--csv", options.csv,
      "Write every step to this file, or with --scaling the table; - is standard output");
  app.add_option("--json", options.json,
                 "Write a summary of the run to this file, or the table, or -");
  app.add_option("--svg", options.svg,
                 "Draw the loss, or with --scaling the table, to this file, or -");
  app.add_option("--tensorboard", options.tensorboard,
                 "Folder for an event file of TensorBoard, which has each step at once");
  app.add_option("--peak-tflops", options.peakTeraflops,
                 "Peak of the processor of one rank: then MFU is told, model FLOPs (6 for each "
                 "parameter, and attention) beside it; 0 = not told")
      ->check(tools::natural(std::numeric_limits<double>::infinity()));
  app.add_option(
      "--report", options.report,
      "Write a page to this file, FILE.html, or with --scaling one of the table: charts, "
      "figures, what was published of the --recipe, settings; it needs no other file");
  app.add_option("--price", options.price,
                 fmt::format("For the --report: dollars an hour and host, or an instance of {}",
                             fmt::join(instanceNames(), ", ")));
  app.add_option(
         "--target-loss", options.targetLoss,
         "For the --report: when was it reached, in validation or else in training? 0 = none")
      ->check(tools::natural());
  app.add_flag("--quiet", options.quiet, "Print nothing but errors");
}

// Where weights come from and go to.
void addCheckpoints(CLI::App& app, Options& options) {
  app.add_option("--save", options.save, "Folder for checkpoints: of the end, and of --save-every");
  app.add_option("--save-every", options.saveEvery,
                 "Save while training goes on, each so many steps")
      ->check(tools::natural());
  app.add_option(
      "--resume", options.resume,
      "Go on from the last checkpoint of this folder; if it is --save's, begin where there "
      "is none yet");
  app.add_option("--start-from", options.startFrom,
                 "Begin with the last checkpoint of an earlier training's folder, of which --keep "
                 "says what is "
                 "kept; with a --resume that has a checkpoint already, that one comes first");
  app.add_option(
         "--keep", options.keepNames,
         "With --start-from: weights, and of state (the optimizer's), schedule (the step) and "
         "data (the position in it) what goes on; what is left out begins anew")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("")
      ->check(CLI::IsMember({"weights", "state", "schedule", "data"}));
  app.add_option(
      "--init-from", options.initFrom,
      "Begin with the weights of this file (.safetensors, .pt, .bin or their .index.json), or of "
      "this folder of Hugging Face's, in place of drawn ones");
  app.add_option(
      "--export", options.exportTo,
      "At the end, write the weights in fp32 by Hugging Face's names: as torch.save does "
      "to FILE.pt, FILE.pth or FILE.bin, else as safetensors");
}

void addScaling(CLI::App& app, Options& options) {
  app.add_option("--scaling", options.scaling,
                 "Print a scaling table for these numbers of ranks: of its own on this host, or "
                 "the first of those that a launcher has started")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::Range(1, 4096));
  app.add_option("--scaling-seconds", options.scalingSeconds,
                 "Time for each measurement of the table")
      ->check(tools::positive());
  app.add_option("--scaling-rounds", options.scalingRounds,
                 "How often each is made, all numbers of ranks in turn")
      ->check(tools::positive());
}

// All options as they were typed, whatever they are.
std::vector<Setting> settingsOf(const CLI::App& app) {
  std::vector<Setting> settings;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_configurable() || option == app.get_help_ptr()) continue;
    const bool isGiven = option->count() > 0, isFlag = option->get_items_expected_max() == 0;
    std::string value = isGiven ? fmt::format("{}", fmt::join(option->reduced_results(), ","))
                                : option->get_default_str();
    if (isFlag) value = isGiven ? "yes" : "no";
    settings.push_back({"--" + option->get_lnames().front(), value, isGiven});
  }
  return settings;
}

ModelShape shapeOf(const Options& o) {
  ModelShape shape = namedShape(o.model);
  if (o.layers > 0) shape.layers = o.layers;
  if (o.hidden > 0) shape.hidden = o.hidden;
  if (o.heads > 0) shape.heads = o.heads;
  if (shape.positions == 0) shape.positions = o.length;
  if (!o.vocabulary.empty()) shape.vocabulary = std::max(shape.vocabulary, kBertVocabulary);
  if (o.vocabularySize > 0) shape.vocabulary = o.vocabularySize;
  shape.rotary = o.rotary;
  if (o.classifies) shape.classes = o.classes;
  return shape;
}

// Of a rank, as --global-batch has them.
int64_t batchesOfStep(const Options& options, int ranks) {
  const int64_t copies = ranks / anyPartOf(options).count(), turn = options.batch * copies;
  if (options.globalBatch % turn != 0)
    throw Failure(
        Exit::kUsage,
        fmt::format("--global-batch {} is no multiple of {} = {} {} x --batch {}; choose "
                    "numbers that divide it",
                    options.globalBatch, turn, copies, copiesInWords(options), options.batch));
  return options.globalBatch / turn;
}

}  // namespace

Options parseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(kAbout, "weft-train");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  addRecipe(app, options);
  addTraining(app, options);
  addModel(app, options);
  addPrecision(app, options);
  addParallelism(app, options);
  addCommunication(app, options);
  addOutput(app, options);
  addCheckpoints(app, options);
  addScaling(app, options);
  tools::addVersion(app, "weft-train");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::exit(tools::runProgram("weft-train", [&]() { return app.exit(help); }));
  } catch (const CLI::ParseError& error) {
    throw Failure(Exit::kUsage, fmt::format("{} (--help lists the options)", error.what()));
  }
  applyRecipe(app, options);
  options.settings = settingsOf(app);
  options.shape = shapeOf(options);
  options.keep = {isKept(options, "state"), isKept(options, "schedule"), isKept(options, "data")};
  if (app.count("--split") == 0)
    options.split = options.evalEvery > 0 && options.valid.empty() ? std::vector<double>{95, 5}
                                                                   : std::vector<double>{1, 0};
  if (options.split.size() == 1) options.split.push_back(0);
  validate(options);
  return options;
}

Options forRanks(const Options& given, int ranks) {
  Options options = withPartsFor(given, ranks);
  if (options.globalBatch > 0) options.accumulate = batchesOfStep(options, ranks);
  validateTurns(options);
  checkDegrees(options.shard, ranks / static_cast<int>(anyPartOf(options).count()));
  return options;
}

bool evaluatesSometimes(const Options& o) { return o.evalEvery > 0 || !o.valid.empty(); }

RateSchedule rateScheduleOf(const Options& o) {
  return {o.learningRate, o.warmup, o.hold, o.steps, o.decay};
}

std::string commonSettings(const Options& o) {
  return fmt::format(
      "steps {} seconds {} seed {} model {} {}x{}x{}x{} rotary {} vocab {} {} dtype {} batch {}x{} "
      "lr "
      "{} warmup {} hold {} to {} decay {} betas {} {} epsilon {} clip {} dropout {} recompute {} "
      "offload {} "
      "wire {} "
      "bucket {} "
      "optimizer {} "
      "momentum {} params "
      "{} loss scale {} from {} window {} rounding {} "
      "shard {} reproducible {} threads {} split {} readers {} eval {} {} keep {} classes {} "
      "tensor {} "
      "sequence {} "
      "pipeline {} virtual {} measured {}",
      o.steps, o.seconds, o.seed, o.model, o.shape.layers, o.shape.hidden, o.shape.heads, o.length,
      static_cast<int>(o.rotary), o.vocabulary, o.shape.vocabulary, o.bf16, o.batch, o.accumulate,
      o.learningRate, o.warmup, o.hold, static_cast<int>(o.decay), o.weightDecay, o.beta1, o.beta2,
      o.epsilon, o.clip, o.dropout, o.recompute, o.offload, o.wireBf16, o.bucketMb, o.optimizer,
      o.momentum, static_cast<int>(o.params), o.lossScale, o.initialLossScale, o.lossScaleWindow,
      o.stochastic, o.shard, o.reproducible, o.reproducible ? std::max(o.threads, 1) : 0,
      fmt::join(o.split, ","), o.readers, o.evalEvery, o.evalBatches, fmt::join(o.keepNames, ","),
      o.shape.classes, o.tensor, o.sequenceParallel, o.pipeline, o.virtualStages,
      o.partitionIsMeasured);
}

}  // namespace weft::train
