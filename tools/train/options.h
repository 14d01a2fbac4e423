// SPDX-License-Identifier: Apache-2.0
// The command line of weft-train.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/learning_rate.h"
#include "tools/train/model_shape.h"
#include "tools/train/reports/summary.h"

namespace weft::train {

// What the model's weights are: those of 16 bits are rounded from fp32 weights of the optimizer, or are
// all that there is.
enum class Params { kFloat32, kBfloat16, kBfloat16Only, kFloat16 };

// Of the checkpoint that a training starts from; its weights in any case.
struct Kept {
  bool state = false;     // of the optimizer
  bool schedule = false;  // the step, by which learning rate and the end go
  bool data = false;      // the position in it
};

struct Options {
  std::string recipe;       // a published job, whose settings are the defaults
  bool scaleDown = false;   // a tiny one of its kind
  std::string recipeNotes;  // its command line, and what of the job is otherwise here

  // What to learn, and for how long.
  std::string data;
  std::string megatron;     // prefix of a dataset, in place of `data`
  bool classifies = false;  // sentences of `data`, as --task says
  int64_t classes = 2;      // of them
  std::string valid;        // the file that they are evaluated on; empty = a share of `data`
  std::vector<double> split{1, 0};  // shares of training and validation
  int64_t readers = 0;              // of HDF5 files; 0 = as --help says
  int64_t evalEvery = 0;            // steps; 0 = never
  int64_t evalBatches = 8;          // global ones
  int64_t steps = 200;
  double seconds = 0;  // stop after this time; 0 = never
  uint64_t seed = 1;

  // The model.
  std::string model = "gpt";
  int64_t layers = 0;  // 0 = the model's, so for hidden and heads
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t length = 128;
  Rotary rotary = Rotary::kPartial;
  std::string vocabulary;      // BERT's file; empty = bytes
  int64_t vocabularySize = 0;  // 0 = the model's
  ModelShape shape{};          // what all of these come to
  bool bf16 = false;           // autocast of matrix products
  Params params = Params::kFloat32;
  double lossScale = 0;  // of fp16 weights; 0 = dynamic, which
  double initialLossScale = 65536;
  int64_t lossScaleWindow = 2000;  // doubles after so many good steps

  // The batch of one rank, and how often it is repeated before a step.
  int64_t batch = 8;
  int64_t accumulate = 1;
  int64_t globalBatch = 0;  // 0 = what the others come to

  // The optimizer.
  double learningRate = 2e-3;
  int64_t warmup = 20;
  int64_t hold = 0;  // steps of the peak after it
  Decay decay = Decay::kCosine;
  double weightDecay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip = 1.0;
  double dropout = 0;
  bool recompute = false;  // blocks in backward
  bool offload = false;    // what goes into them, until then
  std::string offloadFolder = "/var/tmp";
  std::string optimizer = "adamw";
  double momentum = 0.9;    // of sgd
  bool stochastic = false;  // rounding of bf16 weights

  // Communication.
  int64_t tensor = 1;                                       // ranks that share each layer
  bool sequenceParallel = false;                            // and places between layers
  int64_t pipeline = 1;                                     // stages that have layers of their own
  int64_t virtualStages = 1;                                // runs of them that each has
  bool eager = false;                                       // they go forward further ahead
  bool partitionIsMeasured = false;                         // by times of layers, not by sizes
  std::vector<int64_t> blocks;                              // what it comes to, by run of layers
  bool tensorIsRecipes = false, pipelineIsRecipes = false;  // may be lower where so many do not fit
  std::string shard = "none";
  bool reproducible = false;
  bool wireBf16 = false;
  double bucketMb = 2;
  bool noOverlap = false;
  bool independent = false;

  // The machine.
  int ranks = 0;    // local ranks to start; 0 = this process is one rank
  int threads = 0;  // of one rank; 0 = cores / local ranks

  // Output.
  int64_t logEvery = 10;
  std::string csv;
  std::string json;
  std::string svg;
  std::string tensorboard;   // a folder
  double peakTeraflops = 0;  // of a rank, for its utilization; 0 = not told
  std::string report;        // the page
  std::string price;         // an hour of an instance: dollars, or its name
  double targetLoss = 0;     // 0 = none
  bool quiet = false;
  std::string save;       // folder of checkpoints
  int64_t saveEvery = 0;  // steps; 0 = at the end alone
  std::string resume;
  std::string startFrom;  // a folder of checkpoints of an earlier training
  std::vector<std::string> keepNames;
  Kept keep;             // what these come to
  std::string initFrom;  // a file or a folder of weights
  std::string exportTo;

  // The scaling table.
  std::vector<int> scaling;
  double scalingSeconds = 3;
  int64_t scalingRounds = 3;

  std::vector<Setting> settings;  // all options, as they were typed
};

// Reads and checks the command line. --help prints and exits with 0. Throws Failure with a
// sentence.
Options parseOptions(int argc, const char* const* argv);

// The same for so many ranks: how often a batch is repeated follows from --global-batch, and what of
// its degrees of tensor and pipeline parallelism a recipe can have. Throws Failure if ranks or batch are not to be
// divided.
Options forRanks(const Options& given, int ranks);

// Whether there is something to evaluate, and a time for it.
bool evaluatesSometimes(const Options& options);

RateSchedule rateScheduleOf(const Options& options);

// Everything that must be equal on all ranks, as text.
std::string commonSettings(const Options& options);

}  // namespace weft::train
