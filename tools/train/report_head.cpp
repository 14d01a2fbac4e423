// SPDX-License-Identifier: Apache-2.0
#include "tools/train/report_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "tools/train/math_libraries.h"
#include "tools/train/parts_of_model.h"

namespace weft::train {
namespace {

const char* weightsInWords(const Options& options) {
  switch (options.params) {
    case Params::kBfloat16:
      return options.stochastic ? "bf16 rounded stochastically from fp32"
                                : "bf16 rounded from fp32";
    case Params::kFloat16:
      return "fp16 rounded from fp32";
    case Params::kBfloat16Only:
      return options.stochastic ? "bf16 alone, rounded stochastically" : "bf16 alone";
    default:
      return options.bf16 ? "bf16 autocast over fp32 weights" : "fp32";
  }
}

std::string partsInWords(const Options& o) {
  std::string words;
  if (o.tensor > 1)
    words += fmt::format(", each layer {}on {} ranks", o.sequenceParallel ? "and sequence " : "",
                         o.tensor);
  if (o.pipeline > 1)
    words += fmt::format(", a pipeline of {} stages of {} blocks", o.pipeline * o.virtualStages,
                         fmt::join(blocksOfRuns(o.shape, anyPartOf(o).stage), " + "));
  if (o.virtualStages > 1) words += fmt::format(", in turn on {} ranks", o.pipeline);
  return words;
}

}  // namespace

void printHead(Report& report, const Options& o, const Communicator& world, int threads,
               const Trainer& trainer, const TrainingData& data) {
  const weftShardInfo_t info = trainer.info();
  if (!o.recipeNotes.empty()) report.head("recipe " + o.recipeNotes);
  report.head(fmt::format("weft-train: {} ranks{}, {} threads each, {}", world.size(),
                          o.independent ? " on their own" : "", threads, describeMathLibraries()));
  report.head(
      fmt::format("{}: {} layers, hidden {}, {} heads, seq {}: {:.2f} M parameters, {} (wire {}, "
                  "{} buckets of {} MB{})",
                  o.model, o.shape.layers, o.shape.hidden, o.shape.heads, o.length,
                  static_cast<double>(trainer.parameters()) / 1e6, weightsInWords(o),
                  o.wireBf16 ? "bf16" : "fp32", info.buckets, o.bucketMb,
                  o.noOverlap ? ", not overlapped" : ""));
  report.head(fmt::format("{}, shard {}{}{}: {:.1f} MB of weights, gradients and state a rank",
                          o.optimizer, o.shard, partsInWords(o),
                          o.reproducible ? ", reproducible at this --threads and --batch" : "",
                          static_cast<double>(info.bytes) / 1e6));
  const int64_t copies = world.size() / anyPartOf(o).count();
  report.head(fmt::format("data: {}; a step is {} {} x {} x {} = {} sequences; seed {}",
                          data.description(), copies, copiesInWords(o), o.batch, o.accumulate,
                          o.batch * o.accumulate * copies, o.seed));
}

}  // namespace weft::train
