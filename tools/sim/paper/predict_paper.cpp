// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/paper/predict_paper.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/ideal_machine.h"
#include "tools/sim/cluster.h"
#include "tools/sim/paper/exchange.h"
#include "tools/sim/step/predict_step.h"
#include "tools/sim/step/published.h"
#include "tools/sim/step/step_options.h"
#include "topology/fabric_file.h"

namespace weft::simulator {
namespace {

constexpr std::array kShards = {"zero1", "1,1,8"};
constexpr std::array kBucketsMb = {25.0, 100.0, 400.0};

class TablePredictor {
 public:
  TablePredictor(const Paper& paper, const PaperTable& table, const Place& place)
      : paper_(paper), table_(table), place_(place) {}

  Status predict(TablePrediction* out, std::string* measured) {
    out->table = &table_;
    out->slotNs.assign(paper_.stacks.size(), 0);
    for (const PaperRow& row : table_.rows) {
      PaperPrediction& one = out->rows.emplace_back();
      one.row = row;
      one.published = table_.efficiency(row.nodes, row.sequencesPerSecond);
      one.stacks.resize(paper_.stacks.size());
      Cluster cluster;
      WEFT_TRY(makePaperCluster(row.nodes, &cluster));
      for (std::size_t s = 0; s < paper_.stacks.size(); ++s)
        predictStack(cluster, s, &out->slotNs[s], &one);
      if (table_.microBatch == 0) continue;
      // Its plans compute as on the first row, whose exchange takes least with two levels.
      WEFT_TRY(findPlan(cluster, out->slotNs[0], &one.onCards));
      Cluster host = cluster;
      WEFT_TRY(readMachine(place_, &host.machine, measured));
      WEFT_TRY(findPlan(host, out->slotNs[0], &one.onCores));
    }
    return {};
  }

 private:
  // The nodes of one stage, whose groups are those of all others.
  Status makePaperCluster(std::uint32_t nodes, Cluster* cluster) const {
    topology::Fabric fabric;
    WEFT_TRY(topology::parseFabric(paper_.fabric, "paper " + paper_.name, &fabric));
    fabric.nodes.assign(nodes / table_.stages, fabric.nodes[0]);
    cluster->machine = sim::idealMachine();
    return sim::Network::make(fabric, place_.changes, 0, &cluster->network);
  }

  // The first row says how long a slot computes.
  void predictStack(const Cluster& cluster, std::size_t s, double* slotNs,
                    PaperPrediction* one) const {
    const std::uint32_t nodes = one->row.nodes;
    const sim::Groups groups{table_.replicas(nodes), table_.tensor};
    PaperPrediction::OfStack& stack = one->stacks[s];
    stack.exchangeNs = exchangeNs(cluster.network, groups, table_.elements, paper_.stacks[s]);
    if (*slotNs == 0) *slotNs = (table_.stepNs(one->row) - stack.exchangeNs) / table_.slots(nodes);
    const double stepNs = *slotNs * table_.slots(nodes) + stack.exchangeNs;
    stack.sequencesPerSecond = table_.sequencesOn(nodes) / stepNs * 1e9;
    stack.efficiency = table_.efficiency(nodes, stack.sequencesPerSecond);
  }

  Status findPlan(const Cluster& cluster, double slotNs, PaperPrediction::OfPlan* best) const {
    const std::uint32_t nodes = cluster.network.nodes(), ranks = cluster.network.ranks();
    const double sequences = table_.sequencesOn(nodes) / ranks;
    StepSettings settings;
    settings.paramType = settings.wireType = reduce::DType::BF16;
    settings.accumulate = static_cast<std::uint32_t>(std::lround(sequences / table_.microBatch));
    const StepModel model =
        publishedModel(table_.model, {slotNs * sequences / settings.accumulate});
    for (const char* shard : kShards) {
      settings.degrees = degreesOf(shard, ranks, cluster.network.ranksOfNode(0));
      for (const double mb : kBucketsMb) {
        settings.bucketElements = static_cast<std::uint64_t>(mb * 1e6 / sizeof(float));
        StepRow row;
        WEFT_TRY(predictStep(place_, cluster, model, settings, {}, &row));
        if (best->isThere() && row.stepNs >= best->stepNs) continue;
        const double perSecond = table_.sequencesOn(nodes) / row.stepNs * 1e9;
        *best = {shard,
                 mb,
                 row.stepNs,
                 row.exposedNs(),
                 table_.efficiency(nodes, perSecond),
                 {row.algorithms.begin(), row.algorithms.end()}};
      }
      if (ranks == 8) break;  // they are the same
    }
    return {};
  }

  const Paper& paper_;
  const PaperTable& table_;
  const Place& place_;
};

}  // namespace

double TablePrediction::worstPoints(std::size_t stack) const {
  double worst = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const double off = 100 * (rows[i].stacks[stack].efficiency - rows[i].published);
    if (std::abs(off) > std::abs(worst)) worst = off;
  }
  return worst;
}

Status predictTable(const Paper& paper, const PaperTable& table, const Place& place,
                    TablePrediction* out, std::string* measured) {
  return TablePredictor(paper, table, place).predict(out, measured);
}

}  // namespace weft::simulator
