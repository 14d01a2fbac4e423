// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/step.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "perf/common/exit_code.h"
#include "tools/sim/exit.h"
#include "tools/sim/step/step_options.h"
#include "tools/sim/step/step_report.h"

namespace weft::simulator {
namespace {

Status findModel(const StepOptions& options, StepModel* model) {
  if (!isPublishedModel(options.model)) return readModel(options.model, model);
  *model = publishedModel(options.model, options.compute);
  model->updateNsPerElement = options.updateNs;
  return {};
}

// A row, for so many nodes; 0: as the file says.
Status addRow(const StepOptions& options, const StepModel& model, std::uint32_t nodes,
              Cluster* cluster, StepRow* row) {
  Place place = options.place;
  place.nodes = nodes;
  WEFT_TRY(makeCluster(place, cluster));
  WEFT_TRY(checkJoined(place, *cluster));
  StepSettings settings = options.settings;
  const std::uint32_t replicas = cluster->network.ranks() / settings.tensor;
  settings.degrees = degreesOf(options.shard, replicas,
                               std::max(cluster->network.ranksOfNode(0) / settings.tensor, 1u));
  const Status done = predictStep(place, *cluster, model, settings, options.run, row);
  if (done.code() != Code::InvalidArgument) return done;
  return Status::error(Code::InvalidUsage, done.text());  // files have been read
}

Status printRows(const StepOptions& options, const StepModel& model, std::FILE* out,
                 Cluster* cluster, std::vector<StepRow>* rows) {
  std::vector<std::uint32_t> all = options.nodes;
  if (all.empty()) all.push_back(0);
  for (const std::uint32_t nodes : all) {
    WEFT_TRY(addRow(options, model, nodes, cluster, &rows->emplace_back()));
    if (rows->size() == 1) fmt::print(out, "{}", headOf(options, model, *cluster));
    fmt::print(out, "{}", lineOf(options, rows->back()));
    std::fflush(out);
  }
  return {};
}

}  // namespace

int runStep(int argc, char** argv) {
  const std::variant<StepOptions, int> parsed = parseStepOptions(argc, argv);
  if (const int* exitCode = std::get_if<int>(&parsed)) return *exitCode;
  const StepOptions& options = std::get<StepOptions>(parsed);
  const std::optional<tools::ReportFile> json = fileFor(options.json),
                                         trace = fileFor(options.trace);
  StepModel model;
  if (const Status found = findModel(options, &model); !found.ok()) return tell(found);
  Cluster cluster;
  std::vector<StepRow> rows;
  const Status done =
      printRows(options, model, tools::besides({options.json, options.trace}), &cluster, &rows);
  if (!done.ok()) return tell(done);
  if (json) json->write(jsonOf(options, model, cluster, rows));
  if (trace) trace->write(traceOf(rows.back()));
  return tools::kExitHealthy;
}

}  // namespace weft::simulator
