// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "shard/layout.h"

namespace weft::simulator {

// A run of parameters that are used together, and how long a micro-step computes with them.
struct StepLayer {
  std::string name;
  std::size_t first = 0, count = 0;  // parameters
  double forwardNs = 0, backwardNs = 0;
  std::uint64_t tensorBytes = 0;  // that a tensor group adds up in its forward, and in its backward
};

// What a rank trains, as far as time goes: the parameters that it holds, in order of registration.
struct StepModel {
  std::string name;
  std::vector<shard::ParameterSpec> parameters;
  std::vector<StepLayer> layers;
  double updateNsPerElement = 0;  // of the optimizer, for an element whose state a rank owns

  double forwardNs() const;
  double backwardNs() const;
  std::uint64_t elements() const;
};

// A text, a statement a line; # begins a comment:
//
//   weft-model 1                            the first line
//   name WORD
//   update ns-per-element NUMBER            of the optimizer
//   layer NAME forward-us NUMBER backward-us NUMBER [tensor-bytes NUMBER] [repeat NUMBER]
//   parameter NAME ELEMENTS [frozen] [no-decay] [tied-to NAME]
//
// Parameters belong to the layer above them. Those of a layer that is repeated are named after it:
// "block3.qkv". Errors name the file and the line.
Status parseModel(std::string_view lines, const std::string& file, StepModel* model);
Status readModel(const std::string& file, StepModel* model);

// The same as text.
std::string textOf(const StepModel& model);

}  // namespace weft::simulator
