// SPDX-License-Identifier: Apache-2.0
#include "tools/train/options_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "tools/train/failure.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/reports/price.h"
#include "tools/train/sharding.h"

namespace weft::train {
namespace {

void validateData(const Options& options) {
  if (options.data.empty() == options.megatron.empty())
    throw Failure(Exit::kUsage,
                  "what is to be learned? Name a text, --data FILE, or tokens, "
                  "--megatron PREFIX, and not both (--help lists the options)");
  if (fillsMasks(options.shape.family) && !options.megatron.empty())
    throw Failure(Exit::kUsage,
                  "--megatron has tokens for GPT and NeoX, not for BERT and RoBERTa, which learn "
                  "sentences; name a text as --data");
  if (options.megatron.empty() && options.shape.vocabulary < kBytes)
    throw Failure(Exit::kUsage, fmt::format("--vocab-size {} is less than the {} bytes that a text "
                                            "is made of",
                                            options.vocabularySize, kBytes));
  const bool sharesNothing =
      options.split.size() < 2 || options.split.size() > 3 || !(options.split[0] > 0);
  const bool needsShare = options.evalEvery > 0 && options.valid.empty();
  if (sharesNothing || (needsShare && !(options.split[1] > 0)))
    throw Failure(Exit::kUsage,
                  fmt::format("--split {}: it is the shares of training and validation, such as "
                              "95,5, and with --eval-every both are above 0",
                              fmt::join(options.split, ",")));
  if (!options.megatron.empty() && options.seed >> 32 != 0)
    throw Failure(Exit::kUsage, "--megatron: its order takes a --seed below 2^32");
  if (options.globalBatch > 0 && options.accumulate > 1)
    throw Failure(Exit::kUsage,
                  "--global-batch says how often a batch is repeated; leave out "
                  "--grad-accum");
  if (options.globalBatch > 0 && !options.scaling.empty())
    throw Failure(Exit::kUsage,
                  "--scaling keeps the batch of a rank, --global-batch that of all "
                  "ranks; leave one out");
}

void validateTask(const Options& options) {
  if (options.classifies && !fillsMasks(options.shape.family))
    throw Failure(
        Exit::kUsage,
        fmt::format("--task classification is for BERT and RoBERTa, not for {}", options.model));
  if (options.classifies && options.length < 2)
    throw Failure(Exit::kUsage, "--task classification: --seq 1 has no room for a sentence");
  if (options.classifies && options.virtualStages > 1)
    throw Failure(Exit::kUsage,
                  "--task classification: scores go through each stage once; fix: leave out "
                  "--virtual-stages");
  if (!options.classifies && !options.valid.empty())
    throw Failure(Exit::kUsage,
                  "--valid is for --task classification; other data is shared out by --split");
}

void validateReport(const Options& options) {
  if (options.report.empty() && (!options.price.empty() || options.targetLoss > 0))
    throw Failure(Exit::kUsage, "--price and --target-loss are told in a --report FILE.html");
  if (options.price.empty()) return;
  try {
    static_cast<void>(priceOf(options.price));
  } catch (const std::invalid_argument& error) {
    throw Failure(Exit::kUsage, fmt::format("--price {}", error.what()));
  }
}

// The last to be written would be all that is left; devices take what comes.
void validateOutputs(const Options& options) {
  std::map<std::string, std::string> written;
  for (const auto& [option, file] : {std::pair("--csv", options.csv),
                                     {"--json", options.json},
                                     {"--svg", options.svg},
                                     {"--report", options.report},
                                     {"--export", options.exportTo}}) {
    if (file.empty() || file == "-" || file.starts_with("/dev/")) continue;
    const auto [other, isNew] = written.try_emplace(file, option);
    if (!isNew)
      throw Failure(Exit::kUsage, fmt::format("{} {} is the file of {}, too; fix: name another",
                                              option, file, other->second));
  }
}

void validateStart(const Options& options) {
  if (options.startFrom.empty() != options.keepNames.empty())
    throw Failure(
        Exit::kUsage,
        options.startFrom.empty()
            ? "--keep says what is kept of a checkpoint; name its folder, --start-from DIR"
            : "--start-from: say what is kept of it: --keep weights, or with it any of "
              "state, schedule and data, such as --keep weights,state");
  if (!options.startFrom.empty() && !isKept(options, "weights"))
    throw Failure(
        Exit::kUsage,
        fmt::format("--keep {}: without weights there is nothing to start from; leave out "
                    "--start-from, or keep them",
                    fmt::join(options.keepNames, ",")));
  if (!options.startFrom.empty() && !options.initFrom.empty())
    throw Failure(Exit::kUsage, "--start-from and --init-from both bring weights; leave one out");
}

void validateShape(const Options& options) {
  const ModelShape& shape = options.shape;
  if (shape.hidden % shape.heads != 0) {
    throw Failure(Exit::kUsage,
                  fmt::format("--heads {} does not divide --hidden {}", shape.heads, shape.hidden));
  }
  const bool turns = shape.family == Family::kNeox || shape.family == Family::kGptj;
  if (turns && shape.hidden / shape.heads % 8 != 0) {
    throw Failure(Exit::kUsage,
                  fmt::format("--hidden {} / --heads {} is not a multiple of 8: a quarter of each "
                              "head turns in pairs",
                              shape.hidden, shape.heads));
  }
  if (shape.family != Family::kNeox && shape.rotary != Rotary::kPartial) {
    throw Failure(Exit::kUsage, fmt::format("--rotary is for NeoX, not for {}", options.model));
  }
  if (shape.family != Family::kBert && !options.vocabulary.empty()) {
    throw Failure(Exit::kUsage, fmt::format("--vocab is for BERT, not for {}", options.model));
  }
  if (options.length > shape.positions) {
    throw Failure(Exit::kUsage, fmt::format("--seq {} is longer than the {} positions of {}",
                                            options.length, shape.positions, options.model));
  }
}

}  // namespace

bool isKept(const Options& options, const char* what) {
  return std::ranges::find(options.keepNames, what) != options.keepNames.end();
}

void validate(const Options& options) {
  validateShape(options);
  validateData(options);
  validateTask(options);
  validateReport(options);
  validateOutputs(options);
  validateStart(options);
  validateParts(options);
  static_cast<void>(parseDegrees(options.shard, 1, 1));
  if (options.reproducible && options.wireBf16) {
    throw Failure(Exit::kUsage, "--reproducible needs --wire fp32");
  }
  if (options.saveEvery > 0 && options.save.empty()) {
    throw Failure(Exit::kUsage, "--save-every needs a folder, --save DIR");
  }
  if (options.independent && !(options.save.empty() && options.resume.empty() &&
                               options.startFrom.empty() && options.exportTo.empty())) {
    throw Failure(Exit::kUsage,
                  "--independent ranks would overwrite each other's files; leave out "
                  "--save, --resume, --start-from and --export");
  }
  if (options.stochastic &&
      (options.params == Params::kFloat32 || options.params == Params::kFloat16)) {
    throw Failure(Exit::kUsage, "--rounding stochastic is for --params bf16 or bf16-only");
  }
  if (options.bf16 && options.params != Params::kFloat32) {
    throw Failure(Exit::kUsage, "--dtype bf16 is for fp32 weights; --params of 16 bits need none");
  }
  if (options.lossScale > 0 && options.params != Params::kFloat16) {
    throw Failure(Exit::kUsage, "--loss-scale is for --params fp16, whose gradients are small");
  }
  if (options.ranks > 0 && !options.scaling.empty()) {
    throw Failure(Exit::kUsage, "--scaling starts its own ranks; leave out --ranks");
  }
  for (const int ranks : options.scaling) static_cast<void>(forRanks(options, ranks));
  if (!options.scaling.empty() && !options.tensorboard.empty())
    throw Failure(Exit::kUsage, "--tensorboard is for one run, and --scaling does several");
  if (!options.scaling.empty() && !(options.price.empty() && options.targetLoss == 0))
    throw Failure(Exit::kUsage,
                  "--price and --target-loss are for one run, and --scaling does several");
}

}  // namespace weft::train
