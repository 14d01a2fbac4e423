// SPDX-License-Identifier: Apache-2.0
// Texts into datasets, and back.
#pragma once

#include "tools/tokens/options.h"
#include "tools/tokens/tokenizer.h"

namespace weft::tokens {

// Both throw train::Failure.
void encodeTexts(const Options& options, const Tokenizer& tokenizer);
void decodeDataset(const Options& options, const Tokenizer& tokenizer);

}  // namespace weft::tokens
