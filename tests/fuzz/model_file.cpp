// SPDX-License-Identifier: Apache-2.0
// Models of weft-sim step.
#include "fuzz.h"
#include "shard/layout.h"
#include "tools/sim/step/model.h"

namespace weft::fuzz {

void tryInput(Input input) {
  simulator::StepModel first, second;
  if (!isGood(simulator::parseModel(textOf(input), "file", &first))) return;
  const std::string written = simulator::textOf(first);
  require(simulator::parseModel(written, "written", &second).ok(), "what is written can be read");
  require(simulator::textOf(second) == written, "what is written reads as the same");
  shard::Layout layout;
  require(shard::Layout::make(first.parameters, 4096, 3, &layout).ok(), "its buckets can be cut");
}

}  // namespace weft::fuzz
