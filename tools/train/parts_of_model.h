// SPDX-License-Identifier: Apache-2.0
// Into how many parts the command line cuts a model, by --tensor and --pipeline.
#pragma once

#include "tools/train/model_part.h"
#include "tools/train/options.h"

namespace weft::train {

// Throws Failure for what cannot be, however many ranks there are.
void validateParts(const Options& options);

// The same for so many ranks: of a recipe's degrees what fits. Throws Failure if others do not divide
// the ranks.
Options withPartsFor(Options options, int ranks);

// Throws Failure if so many batches a step cannot take turns.
void validateTurns(const Options& options);

// The fewest that can have the model; a recipe's degrees are lowered to any.
int fewestRanks(const Options& options);

// As its first part.
ModelPart anyPartOf(const Options& options);

// What reads a batch of its own.
const char* copiesInWords(const Options& options);

}  // namespace weft::train
