// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/step_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "perf/weft-perf/numbers.h"

namespace weft::simulator {
namespace {

using Json = nlohmann::ordered_json;

double sequencesOf(const StepOptions& options, const StepRow& row) {
  const std::uint32_t replicas = row.ranks / options.settings.tensor;
  return replicas * options.batch * options.settings.accumulate / row.stepNs * 1e9;
}

Json rowOf(const StepOptions& options, const StepRow& row) {
  Json json{{"nodes", row.nodes},
            {"ranks", row.ranks},
            {"buckets", row.buckets},
            {"step_ns", row.stepNs},
            {"compute_ns", row.computeNs},
            {"tensor_groups_ns", row.tensorNs},
            {"exposed_ns", row.exposedNs()},
            {"efficiency_share", row.computeNs / row.stepNs},
            {"sequences_per_s", sequencesOf(options, row)},
            {"least_sent_bytes", row.sentBytes},
            {"algorithms", row.algorithms},
            {"simulated_ranks", row.result.simulated},
            {"simulated_calls", row.calls},
            {"messages", row.result.messages},
            {"events", row.result.events},
            {"simulation_s", row.seconds}};
  if (!row.tooLarge.empty()) json["no_communicator_because"] = row.tooLarge;
  return json;
}

}  // namespace

std::string headOf(const StepOptions& options, const StepModel& model, const Cluster& cluster) {
  return fmt::format(
      "# a step of {} on {} ({}): {:.1f} M parameters of a rank in {} layers, {:.3f} ms of compute "
      "x {}; shard {}; machine: {}\n"
      "# {:>4} {:>6} {:>7} {:>11} {:>11} {:>11} {:>11} {:>10} {:>11} {:>11} {:>6}\n",
      model.name, cluster.network.fabric().name, options.place.topology,
      static_cast<double>(model.elements()) / 1e6, model.layers.size(),
      (model.forwardNs() + model.backwardNs()) / 1e6, options.settings.accumulate, options.shard,
      cluster.measured, "nodes", "ranks", "buckets", "step (ms)", "compute", "tensors", "exposed",
      "efficiency", "seq/s", "sent (MB)", "sim");
}

std::string lineOf(const StepOptions& options, const StepRow& row) {
  const auto ms = [](double ns) { return perf::fitted(ns / 1e6, 11); };
  std::string line = fmt::format(
      "  {:>5} {:>6} {:>7} {:>11} {:>11} {:>11} {:>11} {:>8.2f} % {:>11} {:>11} {:>6}\n", row.nodes,
      row.ranks, row.buckets, ms(row.stepNs), ms(row.computeNs), ms(row.tensorNs),
      ms(row.exposedNs()), 100 * row.computeNs / row.stepNs,
      perf::fitted(sequencesOf(options, row), 11), perf::fitted(row.sentBytes / 1e6, 11),
      row.result.simulated);
  if (row.result.evened) line += "  # last segments were spread over all chunks (--exact)\n";
  if (!row.tooLarge.empty())
    line += fmt::format("  # arrival slots of each call alone: {}\n", row.tooLarge);
  return line;
}

std::string jsonOf(const StepOptions& options, const StepModel& model, const Cluster& cluster,
                   const std::vector<StepRow>& rows) {
  Json json{{"model", model.name},
            {"parameters_elements", model.elements()},
            {"forward_ns", model.forwardNs()},
            {"backward_ns", model.backwardNs()},
            {"update_ns_per_element", model.updateNsPerElement},
            {"topology", options.place.topology},
            {"fabric", cluster.network.fabric().name},
            {"machine", cluster.measured},
            {"shard", options.shard},
            {"bucket_elements", options.settings.bucketElements},
            {"accumulate_micro_steps", options.settings.accumulate},
            {"batch_sequences", options.batch},
            {"tensor_ranks", options.settings.tensor},
            {"overlaps", options.settings.overlaps},
            {"message_ns", options.place.messageNs},
            {"give_back_ns_per_page", options.settings.pages.giveBackNsPerByte * PageCosts::kPage},
            {"touch_ns_per_page", options.settings.pages.touchNsPerByte * PageCosts::kPage}};
  json["rows"] = Json::array();
  for (const StepRow& row : rows) json["rows"].push_back(rowOf(options, row));
  return json.dump(2) + "\n";
}

std::string traceOf(const StepRow& row) {
  constexpr const char* kNames[] = {"caller", "worker", "gatherer"};
  std::string trace = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (std::size_t rank = 0; rank < row.result.phases.size(); ++rank) {
    trace += fmt::format(
        R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0} predicted"}}}},)"
        "\n",
        rank);
    for (std::size_t s = 0; s < std::size(kNames); ++s)
      trace += fmt::format(
          R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}},)"
          "\n",
          rank, s, kNames[s]);
    for (std::size_t i = 0; i < row.phases.phases.size(); ++i) {
      const sim::Interval& when = row.result.phases[rank][i];
      const sim::Phase& phase = row.phases.phases[i];
      trace += fmt::format(
          R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f}}},)"
          "\n",
          Json(phase.name).dump(), phase.call == sim::Phase::kComputes ? "compute" : "call", rank,
          phase.stream, sim::nsOf(when.begin) / 1e3, sim::nsOf(when.end - when.begin) / 1e3);
    }
  }
  trace.resize(trace.size() - 2);
  return trace + "\n]}\n";
}

}  // namespace weft::simulator
