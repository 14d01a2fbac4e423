// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/train/options.h"

namespace weft::train {

// Bytes of the attention scores of one layer: batch x heads x seq x seq. A step needs several times
// as much.
double attentionBytes(const Options& options);

// Throws Failure if a host of so much memory can't hold them.
void checkAttentionFits(const Options& options, double hostBytes);

double bytesOfThisHost();

}  // namespace weft::train
