// SPDX-License-Identifier: Apache-2.0
// How far a training has come: what its checkpoints say beside weights and state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/train/loss_scale.h"

namespace weft::train {

// Where a training stands.
struct Position {
  int64_t step = 0;            // of the schedule
  int64_t position = 0;        // steps that this data has been learned for
  int64_t samplesPerStep = 0;  // of all ranks
  std::string data;            // its fingerprint; empty if a checkpoint does not say
  std::string order = {};  // in which it is learned, where that may be chosen; empty: it may not
  std::optional<LossScale::State> lossScale = {};  // of a training in fp16
};

std::string textOf(const Position& position);

// Of a checkpoint in `folder`. Throws SharedFailure if it is no such text.
Position positionOf(const std::string& text, const std::string& folder);

// Throws SharedFailure unless the data of `mine` may be learned on from where `stored` has stopped.
void checkPosition(const Position& stored, const Position& mine, const std::string& folder);

}  // namespace weft::train
