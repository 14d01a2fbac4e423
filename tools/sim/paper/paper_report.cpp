// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/paper/paper_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::simulator {
namespace {

using Json = nlohmann::ordered_json;

// Without the sign of what is rounded away.
double rounded(double x) { return std::abs(x) < 0.005 ? 0 : x; }

double percentOff(const PaperPrediction& row, std::size_t stack) {
  return 100 * (row.stacks[stack].sequencesPerSecond / row.row.sequencesPerSecond - 1);
}

std::string lineOf(const PaperTable& table, const PaperPrediction& row, bool calibrates) {
  std::string line = fmt::format("  {:>5} {:>5} {:>10.2f} {:>6.2f} %", row.row.nodes,
                                 row.row.nodes * table.ranksOfNode, row.row.sequencesPerSecond,
                                 100 * row.published);
  for (std::size_t s = 0; s < row.stacks.size(); ++s)
    line += fmt::format("  {:>10.2f} {:>6.2f} % {:>+6.2f} {:>+6.2f} %",
                        row.stacks[s].sequencesPerSecond, 100 * row.stacks[s].efficiency,
                        rounded(100 * (row.stacks[s].efficiency - row.published)),
                        rounded(percentOff(row, s)));
  return line + (calibrates ? "  calibrates\n" : "\n");
}

std::string lineOf(const PaperTable& table, const PaperPrediction& row,
                   const PaperPrediction::OfPlan& plan, const char* where) {
  return fmt::format("  {:>5} {:>5}  {:<6} {:>6.2f} % {:>10.1f} {:>8} {:>9.0f}  {}\n",
                     row.row.nodes, row.row.nodes * table.ranksOfNode, where, 100 * plan.efficiency,
                     plan.exposedNs / 1e6, plan.shard, plan.bucketMb,
                     fmt::join(plan.algorithms, "; "));
}

std::string plansOf(const TablePrediction& table, const std::string& measured) {
  std::string text = fmt::format(
      "  With weft's best plan: zero1 and 1,1,8 x buckets of 25, 100 and 400 MB of fp32, in bf16, "
      "the "
      "slots as above.\n"
      "  cards: copies and sums take no time. cores: one for each rank copies and adds, by {}.\n"
      "  {:>5} {:>5}  {:<6} {:>8} {:>10} {:>8} {:>9}  {}\n",
      measured, "nodes", "ranks", "on", "effic.", "exposed ms", "degrees", "bucket MB",
      "algorithms");
  for (const PaperPrediction& row : table.rows) {
    text += lineOf(*table.table, row, row.onCards, "cards");
    text += lineOf(*table.table, row, row.onCores, "cores");
  }
  return text;
}

Json planOf(const PaperPrediction::OfPlan& plan) {
  return {{"shard", plan.shard},
          {"bucket_mb_of_fp32", plan.bucketMb},
          {"step_ns", plan.stepNs},
          {"exposed_ns", plan.exposedNs},
          {"efficiency_share", plan.efficiency},
          {"algorithms", plan.algorithms}};
}

Json rowOf(const Paper& paper, const PaperTable& table, const PaperPrediction& row) {
  Json json{{"nodes", row.row.nodes},
            {"ranks", row.row.nodes * table.ranksOfNode},
            {"calibrates", row.row.nodes == table.rows[0].nodes},
            {"published_sequences_per_s", row.row.sequencesPerSecond},
            {"published_efficiency_share", row.published}};
  json["predicted"] = Json::array();
  for (std::size_t s = 0; s < row.stacks.size(); ++s)
    json["predicted"].push_back({{"stack", paper.stacks[s].name},
                                 {"exchange_ns", row.stacks[s].exchangeNs},
                                 {"sequences_per_s", row.stacks[s].sequencesPerSecond},
                                 {"efficiency_share", row.stacks[s].efficiency}});
  if (row.onCards.isThere()) json["weft_on_cards"] = planOf(row.onCards);
  if (row.onCores.isThere()) json["weft_on_cores"] = planOf(row.onCores);
  return json;
}

}  // namespace

std::string headOf(const Paper& paper) {
  std::string text = fmt::format("# {}\n", paper.title);
  for (const std::string& note : paper.notes) text += fmt::format("#   {}\n", note);
  for (const PaperStack& stack : paper.stacks)
    text += fmt::format("#   '{}': {}\n", stack.name, stack.why);
  return text;
}

std::string tableOf(const Paper& paper, const TablePrediction& table, const std::string& measured) {
  std::string text = fmt::format("\n{}\n", table.table->model);
  for (const std::string& note : table.table->notes) text += fmt::format("#   {}\n", note);
  text += fmt::format("  {:>5} {:>5} {:>10} {:>8}", "nodes", "ranks", "seq/s", "effic.");
  for (std::size_t s = 0; s < paper.stacks.size(); ++s)
    text += fmt::format("  {:>10} {:>8} {:>6} {:>8}", "predicted", "effic.", "points", "seq/s");
  text += "\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    text += lineOf(*table.table, table.rows[i], i == 0);
  for (std::size_t s = 0; s < paper.stacks.size(); ++s)
    text += fmt::format(
        "  '{}': a slot computes for {:.4f} ms; the worst held-out row is {:+.2f} points off\n",
        paper.stacks[s].name, table.slotNs[s] / 1e6, table.worstPoints(s));
  if (table.rows[0].onCards.isThere()) text += plansOf(table, measured);
  return text;
}

std::string jsonOf(const Paper& paper, const std::vector<TablePrediction>& tables,
                   const std::string& measured) {
  Json json{{"paper", paper.name}, {"title", paper.title}, {"notes", paper.notes}};
  if (!measured.empty()) json["machine"] = measured;
  for (const PaperStack& stack : paper.stacks)
    json["stacks"].push_back({{"name", stack.name}, {"why", stack.why}});
  json["tables"] = Json::array();
  for (const TablePrediction& table : tables) {
    Json one{
        {"model", table.table->model}, {"notes", table.table->notes}, {"slot_ns", table.slotNs}};
    for (const PaperPrediction& row : table.rows)
      one["rows"].push_back(rowOf(paper, *table.table, row));
    json["tables"].push_back(std::move(one));
  }
  return json.dump(2) + "\n";
}

}  // namespace weft::simulator
