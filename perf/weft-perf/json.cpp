// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/json.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "perf/common/error_json.h"
#include "perf/weft-perf/numbers.h"

namespace weft::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 2;  // nccl-tests'

Json environment() {
  Json lines = Json::array();
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string text = *line;
    const bool ours = text.starts_with("WEFT_") || text.starts_with("NCCL_TESTS_");
    if (ours && !text.starts_with("WEFT_SECRET")) lines.push_back(text);
  }
  return lines;
}

Json configuration(const Options& options) {
  Json config{{"nthreads", options.threads},
              {"ngpus", options.perThread},
              {"minimum_bytes", options.minBytes},
              {"maximum_bytes", options.maxBytes}};
  if (options.factor > 1) {
    config["step_factor"] = options.factor;
  } else {
    config["step_bytes"] = options.stepBytes;
  }
  config.update(Json{{"warmup_iters", options.warmup},
                     {"further_warmup", options.settles},
                     {"iterations", options.iterations},
                     {"aggregated_iterations", options.aggregate},
                     {"validation", options.checks},
                     {"graph", 0},
                     {"blocking_collectives", false},
                     {"per_iter_timing", options.timesIterations()},
                     {"parallel_init", options.parallelInit},
                     {"unalign", options.unalign},
                     {"unalign_bytes", options.unalignBytes},
                     {"stream", options.useStream},
                     {"algorithm", options.algorithm},
                     {"transport", options.transport},
                     {"reproducible", options.reproducible}});
  return config;
}

Json device(const RankInfo& info) {
  return {{"rank", info.rank},
          {"group", info.group},
          {"pid", info.pid},
          {"hostname", info.host},
          {"device", info.device},
          {"device_hex", "host"},
          {"device_info", info.processor}};
}

Json memoryJson(const Memory& memory) {
  return {{"shared", memory.shared},
          {"plans", memory.plans},
          {"other", memory.other},
          {"total", memory.total()}};
}

Json perIteration(const Measurement& measurement, int skipped) {
  const Statistics s = statisticsOf(measurement.microsecondsAfter(skipped));
  return {{"min_us", s.min},         {"max_us", s.max},
          {"avg_us", s.mean},        {"p50_us", s.p50},
          {"p95_us", s.p95},         {"p99_us", s.p99},
          {"stdev_us", s.deviation}, {"cv_pct", s.variationPercent()},
          {"skipped", skipped},      {"times_us", measurement.microseconds()}};
}

Json figuresJson(const Options& options, const Row& row, const Measurement& measurement) {
  const Figures figures = figuresOf(row.problem, measurement);
  return {{options.cpuTime ? "cpu_time" : "time", figures.microseconds},
          {"alg_bw", figures.algBw},
          {"bus_bw", figures.busBw},
          {"nwrong", measurement.wrong ? Json(*measurement.wrong) : Json(nullptr)}};
}

}  // namespace

struct JsonReport::Document {
  Json json;
};

JsonReport::JsonReport(const Options& options, int argc, char** argv)
    : options_(options), file_(options.json), document_(std::make_unique<Document>()) {
  document_->json = Json{{"version", kFormatVersion},
                         {"start_time", timestamp()},
                         {"args", std::vector<std::string>(argv, argv + argc)},
                         {"env", environment()},
                         {"weft_version", WEFT_VERSION_CODE},
                         {"config", configuration(options)},
                         {"devices", Json::array()},
                         {"results", Json::array()},
                         {"errors", Json::array()}};
}

JsonReport::~JsonReport() = default;

void JsonReport::head(const std::vector<RankInfo>& ranks, const std::string& machine) {
  if (!machine.empty()) document_->json["machine"] = machine;
  for (const RankInfo& rank : ranks) document_->json["devices"].push_back(device(rank));
  document_->json["library_memory"] = memoryJson(largestMemory(ranks));
}

void JsonReport::row(const Row& row) {
  const Problem& problem = row.problem;
  Json result{{"size", problem.bytes()},
              {"count", problem.count},
              {"type", problem.type.name},
              {"redop", problem.op.name},
              {"root", problem.root}};
  const auto add = [&](const char* side, const std::optional<Measurement>& measurement) {
    result[side] = measurement ? figuresJson(options_, row, *measurement) : Json(nullptr);
    if (measurement && !measurement->iterations.empty()) {
      result[std::string(side) + "_per_iter"] =
          perIteration(*measurement, options_.skippedIterations);
    }
  };
  add("out_of_place", row.outOfPlace);
  add("in_place", row.inPlace);
  result["actual_iterations"] = options_.iterations;
  result["experiment_name"] = std::string(problem.collective->name) + "_perf";
  if (!row.explanation.empty()) result["explanation"] = row.explanation;
  document_->json["results"].push_back(std::move(result));
}

void JsonReport::foot(const Summary& summary, const Memory& memory) {
  Json& json = document_->json;
  json["out_of_bounds"] = {{"count", summary.wrong}, {"okay", summary.wrong == 0}};
  json["average_bus_bandwidth"] = {{"bandwidth", summary.averageBusBw()}};
  json["average_bus_bandwidth"]["okay"] =
      summary.checksBusBw() ? Json(summary.fastEnough()) : Json("unchecked");
  json["library_memory_at_end"] = memoryJson(memory);
}

void JsonReport::error(const std::string& text, const ErrorInfo& error) {
  document_->json["errors"].push_back(text);
  document_->json["error_info"].push_back(tools::errorJson<Json>(error));
}

void JsonReport::write() {
  document_->json["end_time"] = timestamp();
  file_.write(document_->json.dump(2) + '\n');
}

}  // namespace weft::perf
