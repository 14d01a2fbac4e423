// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parallel_options.h"

#include "perf/common/command_line.h"
#include "tools/train/choice_option.h"

namespace weft::train {

void addParallelism(CLI::App& app, Options& options) {
  app.add_option(
         "--tensor", options.tensor,
         "Neighbouring ranks that share each layer (tensor parallelism), and so a batch; the "
         "others are data-parallel. Divides ranks and --heads")
      ->check(tools::positive());
  app.add_flag("--sequence-parallel", options.sequenceParallel,
               "With --tensor, which divides --seq then: norms, dropout and sums, which those "
               "ranks do alike "
               "else, are of an equal part of each sequence, for less memory");
  app.add_option(
         "--pipeline", options.pipeline,
         "Stages that have layers of their own (pipeline parallelism): each passes the batches of "
         "a "
         "step, --grad-accum of them, on to the next. With --tensor it divides the ranks; at most "
         "--layers")
      ->check(tools::positive());
  app.add_option(
         "--virtual-stages", options.virtualStages,
         "Runs of layers of each stage (interleaved 1F1B): the stages idle so many times less, and "
         "say "
         "so many times more. With --pipeline, which divides --grad-accum then; times that at most "
         "--layers")
      ->check(tools::positive());
  app.add_flag("--eager", options.eager,
               "Stages of --pipeline begin with twice as many forwards (eager 1F1B), so that they "
               "wait less for messages and late passes, and keep the activations of more batches; "
               "virtual stages always do");
  addChoice(app, "--partition", options.partitionIsMeasured, {{"sizes", false}, {"measured", true}},
            "Blocks of each stage of --pipeline, so that the slowest one takes as short as it can: "
            "by the sizes "
            "of matrices, or by the time that embedding, block and head take on these ranks, "
            "measured at the start");
}

}  // namespace weft::train
