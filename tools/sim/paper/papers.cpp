// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/paper/papers.h"

#include <algorithm>

#include "tools/train/reports/published.h"

namespace weft::simulator {
namespace {

using reduce::DType;
using schedule::Collective;

std::vector<PaperRow> rowsOf(const std::string& recipe) {
  std::vector<PaperRow> rows;
  for (const train::PublishedRow& row : train::publishedJob(recipe)->rows)
    rows.push_back({static_cast<std::uint32_t>(row.nodes), row.sequencesPerSecond});
  return rows;
}

Paper dl1() {
  Paper paper;
  paper.name = "dl1";
  paper.title =
      "BERT on dl1.24xlarge, 8 Gaudi cards a node, DeepSpeed ZeRO-1 in bf16, sequences of 128";
  paper.fabric =
      "weft-topology 1\n"
      "name dl1.24xlarge\n"
      "nodes 1 ranks 8\n"
      "mesh all gbit 100 us 3\n"
      "rail efa0 gbit 100 us 20 ranks 0-1\n"
      "rail efa1 gbit 100 us 20 ranks 2-3\n"
      "rail efa2 gbit 100 us 20 ranks 4-5\n"
      "rail efa3 gbit 100 us 20 ranks 6-7\n";
  paper.stacks = {
      {"two levels, bf16",
       "HCCL's documents: most collectives are hierarchical; gradients in bf16 as the model's",
       {{Collective::AllReduce, DType::BF16, PaperExchange::Ways::TwoLevel},
        {Collective::AllGather, DType::BF16, PaperExchange::Ways::TwoLevel}}},
      {"flat, bf16",
       "each card exchanges with all others over its half of a NIC",
       {{Collective::AllReduce, DType::BF16, PaperExchange::Ways::Flat},
        {Collective::AllGather, DType::BF16, PaperExchange::Ways::Flat}}},
      {"flat, fp32",
       "the same, with the fp32 gradients of DeepSpeed's BF16_Optimizer (pull requests 2706, 4713)",
       {{Collective::AllReduce, DType::F32, PaperExchange::Ways::Flat},
        {Collective::AllGather, DType::BF16, PaperExchange::Ways::Flat}}},
  };
  PaperTable large;
  large.model = "bert-large";
  large.elements = 336226108;
  large.sequences = 65536;
  large.ranksOfNode = 8;
  large.microBatch = 64;
  large.rows = rowsOf("bert-large-phase1");
  large.notes = {
      "340 M parameters in the table; 336.2 M are counted, with both heads",
      "the batch is not in the table: 65,536 of all cards is the vendor's recipe for 8 cards "
      "(8,192 each, HabanaAI/Model-References, PyTorch/nlp/bert), assumed to stay",
      "micro-batches of 64 for weft's plans: the same recipe"};
  PaperTable larger;
  larger.model = "bert-1.5b";
  larger.elements = 1530379324;
  larger.sequences = 8 * 384;
  larger.batchGrows = true;
  larger.ranksOfNode = 8;
  larger.microBatch = 16;
  larger.rows = rowsOf("bert-1.5b-dl1");
  larger.notes = {
      "micro-batches of 16, 24 of them a step, on each card: the post, of 8 and 16 nodes; "
      "of one node it is assumed (the vendor's recipe for it has 1,536 a card)"};
  paper.tables = {large, larger};
  paper.notes = {
      "rows: the post on BERT pre-training on up to 16 dl1.24xlarge",
      "100 Gbit/s between any two cards of a node, 4 x 100 Gbit/s EFA a node: the instance's data "
      "sheet, line rates; which two cards share an EFA device, and the latencies, are assumed",
      "DeepSpeed's ZeRO-1 all-reduces all gradients after the last micro-step, and gathers "
      "parameters "
      "after the update (stage_1_and_2.py, bf16_optimizer.py; buckets of 5e8 elements), with "
      "nothing "
      "beside it: overlap_comm is off below stage 3",
      "of an exchange only bytes count: it takes as long as the busiest link at its line rate; "
      "latencies, "
      "copies, sums and the way through host memory are left out",
  };
  return paper;
}

PaperTable trainium(const std::string& model, double elements, double sequences,
                    std::uint32_t stages, std::vector<PaperRow> rows) {
  PaperTable table;
  table.model = model;
  table.elements = elements / (8 * stages);
  table.sequences = sequences;
  table.ranksOfNode = 32;
  table.tensor = 8;
  table.stages = stages;
  table.rows = std::move(rows);
  return table;
}

Paper neox() {
  Paper paper;
  paper.name = "neox";
  paper.title =
      "Pythia-6.9B and GPT-NeoX-20B on trn1.32xlarge, 32 workers a node, bf16, sequences of 2048";
  paper.fabric =
      "weft-topology 1\n"
      "name trn1.32xlarge\n"
      "nodes 1 ranks 32\n"
      "mesh all gbit 48 us 3\n"
      "rail efa0 gbit 100 us 20 ranks 0-3\n"
      "rail efa1 gbit 100 us 20 ranks 4-7\n"
      "rail efa2 gbit 100 us 20 ranks 8-11\n"
      "rail efa3 gbit 100 us 20 ranks 12-15\n"
      "rail efa4 gbit 100 us 20 ranks 16-19\n"
      "rail efa5 gbit 100 us 20 ranks 20-23\n"
      "rail efa6 gbit 100 us 20 ranks 24-27\n"
      "rail efa7 gbit 100 us 20 ranks 28-31\n";
  paper.stacks = {{"two levels, bf16",
                   "one reduction of all gradients after the last slot, and a gather of parameters",
                   {{Collective::ReduceScatter, DType::BF16, PaperExchange::Ways::TwoLevel},
                    {Collective::AllGather, DType::BF16, PaperExchange::Ways::TwoLevel}}}};
  paper.tables = {trainium("neox-20b", 20554567680, 16384, 4, rowsOf("neox-20b-trn1")),
                  trainium("pythia-6.9b", 6857302016, 256, 1, rowsOf("pythia-6.9b-trn1"))};
  paper.tables[0].notes = {
      "tensor groups of 8 and 4 stages; a step is (sequences / replicas + 3) "
      "slots of a pipeline whose stages are alike (one sequence each: assumed)",
      "a stage is on a quarter of the nodes (Megatron's order of ranks: assumed)"};
  paper.tables[1].notes = {
      "tensor groups of 8, no pipeline",
      "the optimizer's step, which does not shrink with the batch, stands in no "
      "table: it counts as computation that does"};
  paper.notes = {
      "rows: the post on NeoX and Pythia on trn1.32xlarge; batches and degrees are in its table",
      "8 x 100 Gbit/s EFA a node: the instance's data sheet, line rate; which workers share a "
      "device, "
      "48 Gbit/s between any two workers of a node in place of the torus, and the latencies, are "
      "assumed",
      "what tensor groups and stages exchange is the same in all rows, and counts as computation",
      "no plan of weft is tried, as weft-sim step has no pipelines",
  };
  return paper;
}

Paper gptj() {
  Paper paper;
  paper.name = "gptj";
  paper.title =
      "GPT-J-6B on one p4d.24xlarge: 58 minutes an epoch become less than 10, 8 of them training";
  paper.notes = {
      "the post gives one size of one cluster: there is no row that another could predict"};
  return paper;
}

}  // namespace

const std::vector<Paper>& papers() {
  static const std::vector<Paper> all{dl1(), neox(), gptj()};
  return all;
}

const Paper* findPaper(const std::string& name) {
  const auto found = std::ranges::find(papers(), name, &Paper::name);
  return found == papers().end() ? nullptr : &*found;
}

}  // namespace weft::simulator
