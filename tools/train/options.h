// SPDX-License-Identifier: Apache-2.0
// The command line of weft-train.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::train {

struct Options {
  // What to learn, and for how long.
  std::string data;
  int64_t steps = 200;
  double seconds = 0;  // stop after this time; 0 = never
  uint64_t seed = 1;

  // The model.
  int64_t layers = 4;
  int64_t hidden = 256;
  int64_t heads = 4;
  int64_t length = 128;
  bool bf16 = false;

  // The batch of one rank, and how often it is repeated before a step.
  int64_t batch = 8;
  int64_t accumulate = 1;

  // The optimizer.
  double learningRate = 2e-3;
  int64_t warmup = 20;
  double weightDecay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double clip = 1.0;

  // Communication.
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
  bool quiet = false;

  // The scaling table.
  std::vector<int> scaling;
  double scalingSeconds = 6;
};

// Reads and checks the command line. --help prints and exits with 0. Throws Failure with a
// sentence.
Options parseOptions(int argc, const char* const* argv);

// Everything that must be equal on all ranks, as text.
std::string commonSettings(const Options& options);

}  // namespace weft::train
