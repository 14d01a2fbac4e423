// SPDX-License-Identifier: Apache-2.0
#include "tools/train/degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tools/train/failure.h"

namespace weft::train {

Degrees parseDegrees(const std::string& text, int ranks, int localRanks) {
  if (text == "none") return {1, 1, 1};
  if (text == "zero1") return {1, 1, 0};
  if (text == "zero2") return {1, 0, 0};
  if (text == "zero3") return {0, 0, 0};
  if (text == "mics") {
    const int group = localRanks < ranks ? localRanks : std::max(ranks / 2, 1);
    return {group, group, group};
  }
  Degrees d;
  char comma = 0, second = 0, rest = 0;
  std::istringstream stream(text);
  if (stream >> d.param >> comma >> d.grad >> second >> d.state && comma == ',' && second == ',' &&
      !(stream >> rest))
    return d;
  throw Failure(Exit::kUsage,
                fmt::format("--shard {}: it is none, zero1, zero2, zero3, mics or three numbers "
                            "K,L,M of ranks that share parameters, gradients and state",
                            text));
}

}  // namespace weft::train
