// SPDX-License-Identifier: Apache-2.0
#include "tools/train/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

constexpr const char* kAbout =
    "Trains a GPT on the bytes of any text, data-parallel over weft.\n"
    "The ranks are those that a launcher started (mpirun, srun, torchrun, WEFT_RANK and friends), "
    "or\n"
    "--ranks N local ones, or this process alone.";

void addModel(CLI::App& app, Options& options) {
  app.add_option("--layers", options.layers, "Transformer blocks")->check(CLI::PositiveNumber);
  app.add_option("--hidden", options.hidden, "Width of the model")->check(CLI::PositiveNumber);
  app.add_option("--heads", options.heads, "Attention heads; divide --hidden")
      ->check(CLI::PositiveNumber);
  app.add_option("--seq", options.length, "Tokens (bytes) in a sequence")
      ->check(CLI::PositiveNumber);
}

void addTraining(CLI::App& app, Options& options) {
  app.add_option("--data", options.data,
                 "Text to learn: a file, or a folder with all files below it")
      ->required();
  app.add_option("--steps", options.steps, "Optimizer steps")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds,
                 "Stop after this time even if steps are left; 0 = never")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", options.seed, "Same seed, same settings, same bits");
  app.add_option("--batch", options.batch, "Sequences of one rank at a time")
      ->check(CLI::PositiveNumber);
  app.add_option("--accumulate", options.accumulate, "Batches of one rank in a step")
      ->check(CLI::PositiveNumber);
  app.add_option("--lr", options.learningRate, "Peak learning rate")->check(CLI::NonNegativeNumber);
  app.add_option("--warmup", options.warmup, "Steps of linear warm-up, before a cosine to a tenth")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--weight-decay", options.weightDecay,
                 "AdamW's, for matrices; biases, LayerNorms and embeddings have none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--beta1", options.beta1, "AdamW's")->check(CLI::Range(0.0, 0.9999));
  app.add_option("--beta2", options.beta2, "AdamW's")->check(CLI::Range(0.0, 0.99999));
  app.add_option("--clip", options.clip, "Largest norm of the gradients; 0 = any")
      ->check(CLI::NonNegativeNumber);
}

void addPrecision(CLI::App& app, Options& options) {
  const std::map<std::string, bool> isBf16{{"fp32", false}, {"bf16", true}};
  const auto parse = CLI::CheckedTransformer(isBf16).description("{fp32,bf16}");
  app.add_option("--dtype", options.bf16, "Of matrix products; weights and moments are always fp32")
      ->transform(parse);
  app.add_option("--wire", options.wireBf16, "Of gradients while they travel")->transform(parse);
}

void addCommunication(CLI::App& app, Options& options) {
  app.add_option("--ranks", options.ranks, "Start this many ranks on this machine")
      ->check(CLI::Range(1, 4096));
  app.add_option("--threads", options.threads,
                 "Compute threads of one rank; 0 = cores / local ranks")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--bucket-mb", options.bucketMb,
                 "Gradients are all-reduced in buckets of this many MB")
      ->check(CLI::PositiveNumber);
  app.add_flag("--no-overlap", options.noOverlap, "All-reduce only after backward, for comparison");
  app.add_flag("--independent", options.independent,
               "Ranks train without each other, for comparison");
}

void addOutput(CLI::App& app, Options& options) {
  app.add_option("--log-every", options.logEvery, "Print every so many steps")
      ->check(CLI::PositiveNumber);
  app.add_option("--csv", options.csv, "Write every step to this file");
  app.add_option("--json", options.json, "Write a summary of the run to this file");
  app.add_flag("--quiet", options.quiet, "Print nothing but errors");
  app.add_option("--scaling", options.scaling,
                 "Print a scaling table for these numbers of local ranks")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::Range(1, 4096));
  app.add_option("--scaling-seconds", options.scalingSeconds,
                 "Time for each measurement of the table")
      ->check(CLI::PositiveNumber);
}

void validate(const Options& options) {
  if (options.hidden % options.heads != 0) {
    throw Failure(Exit::kUsage, fmt::format("--heads {} does not divide --hidden {}", options.heads,
                                            options.hidden));
  }
  if (options.ranks > 0 && !options.scaling.empty()) {
    throw Failure(Exit::kUsage, "--scaling starts its own ranks; leave out --ranks");
  }
  if (!options.scaling.empty() && !(options.csv.empty() && options.json.empty())) {
    throw Failure(Exit::kUsage, "--csv and --json are for one run, and --scaling does several");
  }
}

}  // namespace

Options parseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(kAbout, "weft-train");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  addTraining(app, options);
  addModel(app, options);
  addPrecision(app, options);
  addCommunication(app, options);
  addOutput(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    throw Failure(Exit::kUsage, fmt::format("{} (--help lists the options)", error.what()));
  }
  validate(options);
  return options;
}

std::string commonSettings(const Options& o) {
  return fmt::format(
      "steps {} seconds {} seed {} gpt {}x{}x{}x{} dtype {} batch {}x{} lr {} warmup {} "
      "decay {} betas {} {} clip {} wire {} bucket {}",
      o.steps, o.seconds, o.seed, o.layers, o.hidden, o.heads, o.length, o.bf16, o.batch,
      o.accumulate, o.learningRate, o.warmup, o.weightDecay, o.beta1, o.beta2, o.clip, o.wireBf16,
      o.bucketMb);
}

}  // namespace weft::train
