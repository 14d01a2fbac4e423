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
    int group = localRanks < ranks ? localRanks : std::max(ranks / 2, 1);
    while (ranks % group != 0) --group;
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

void checkDegrees(const std::string& text, int ranks) {
  const Degrees degrees = parseDegrees(text, ranks, ranks);
  int before = 1;
  for (const int degree : {degrees.param, degrees.grad, degrees.state, ranks}) {
    const int shared = degree == 0 ? ranks : degree;
    if (shared < 0 || shared % before != 0)
      throw Failure(Exit::kUsage,
                    fmt::format("--shard {} on {} data-parallel ranks: each number must divide the "
                                "next, and the last one the ranks; 0 is all of them",
                                text, ranks));
    before = shared;
  }
}

}  // namespace weft::train
