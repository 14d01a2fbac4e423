// SPDX-License-Identifier: Apache-2.0
// Published scaling tables, and what is known and assumed of the clusters that they were measured on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reduce/reduce.h"
#include "schedule/collective.h"

namespace weft::simulator {

// A measured row. The first one of a table calibrates, all others are held out.
struct PaperRow {
  std::uint32_t nodes = 0;
  double sequencesPerSecond = 0;
};

// One training at several sizes. Ranks compute for slots, which all take the same time: of a step each
// has (sequences / replicas / slotSequences + stages - 1), the last of which fill a pipeline.
struct PaperTable {
  std::string model;        // as weft-train names it
  double elements = 0;      // of the parameters of a rank
  double sequences = 0;     // of a step, on the nodes of the first row
  bool batchGrows = false;  // with the nodes; else it stays
  std::uint32_t ranksOfNode = 0, tensor = 1, stages = 1;
  double slotSequences = 1;
  double microBatch = 0;  // of a rank with weft's plans; 0: none are tried
  std::vector<PaperRow> rows;
  std::vector<std::string> notes;  // sources, and what is assumed

  std::uint32_t replicas(std::uint32_t nodes) const {
    return nodes * ranksOfNode / (tensor * stages);
  }
  double sequencesOn(std::uint32_t nodes) const {
    return batchGrows ? sequences * nodes / rows[0].nodes : sequences;
  }
  double slots(std::uint32_t nodes) const {
    return sequencesOn(nodes) / replicas(nodes) / slotSequences + stages - 1;
  }
  double stepNs(const PaperRow& row) const {
    return sequencesOn(row.nodes) / row.sequencesPerSecond * 1e9;
  }
  double efficiency(std::uint32_t nodes, double sequencesPerSecond) const {
    return sequencesPerSecond / nodes / (rows[0].sequencesPerSecond / rows[0].nodes);
  }
};

// A call that a data-parallel group makes in each step, of all parameters, with nothing beside it.
struct PaperExchange {
  enum class Ways : std::uint8_t { Flat, TwoLevel };
  schedule::Collective collective = schedule::Collective::AllReduce;
  reduce::DType type = reduce::DType::BF16;
  Ways ways = Ways::Flat;
};

// What may have run there. Nothing in it is fitted.
struct PaperStack {
  std::string name, why;
  std::vector<PaperExchange> exchanges;
};

struct Paper {
  std::string name, title;
  std::string fabric;  // of one node, as a topology file
  std::vector<PaperStack> stacks;
  std::vector<PaperTable> tables;
  std::vector<std::string> notes;  // sources, and what is assumed
};

const std::vector<Paper>& papers();
const Paper* findPaper(const std::string& name);  // null: there is none

}  // namespace weft::simulator
