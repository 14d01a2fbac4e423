// SPDX-License-Identifier: Apache-2.0
// What one job has measured, and all that its predictions follow from, so that they can be made
// again.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "perf/accuracy/judge.h"
#include "perf/accuracy/point.h"
#include "plan/tuning.h"
#include "tune/machine.h"

namespace weft::accuracy {

// A way to make the calls of a point.
struct Form {
  std::string name;    // as weftOpts_t.algorithm has it; "": what the library chooses
  Turns turns;         // nanoseconds a call
  double probeNs = 0;  // of the first calls; without turns it was too slow to be measured further
};

struct Measured {
  Point point;
  std::string chosen;                 // the algorithm of the plan that runs where nothing is forced
  std::uint64_t hash = 0;             // of that plan of rank 0, as weftCommExplain prints it
  std::vector<Form> forms;            // the choice first
  std::vector<std::uint32_t> states;  // by turn, which of World::states it follows
};

// As messages of 8 bytes from rank 0 to rank 1 tell, in nanoseconds.
struct Entry {
  double steadyNs = 0;  // one of many in a row
  double freshNs = 0;   // one by itself, without the flag's way
};

// What predictions follow from. A virtual machine's cores come and go, so it is measured again and again.
struct State {
  tune::Machine machine;
  Entry entry;  // what a call takes besides its ops
};

struct World {
  std::uint32_t ranks = 0;
  plan::Tuning tuning;        // on which the ranks agreed, and by which the model chooses
  std::string calibration;    // where its numbers are from
  std::vector<State> states;  // of the machine, one after the other
  double seconds = 0;         // that it took
  std::size_t planned = 0;    // points of the sweep; `points` are those that were visited
  std::vector<Measured> points;
};

nlohmann::ordered_json jsonOf(const World& world);
// What jsonOf() has made. InvalidArgument where something is missing or of no use.
Status readWorld(const nlohmann::ordered_json& json, World* world);

}  // namespace weft::accuracy
