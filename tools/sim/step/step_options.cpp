// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/step_options.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/weft-perf/parsed.h"
#include "tools/train/degrees.h"
#include "tools/train/failure.h"
#include "topology/fabric_file.h"

namespace weft::simulator {
namespace {

constexpr const char* kStepFooter = R"(
Examples
  weft-sim step --topology dl1.24xlarge.topo --nodes 1,2,4,8 --model bert-large --compute-ms 640 --shard zero1
  weft-sim step --topology p4d.24xlarge.topo --model mine.model --shard mics --params bf16 --trace step.json

A model is one of weft-train's, whose layers share the time that --compute-ms gives a micro-step, or a
file (examples/models has one, which says what is in it). Steps go as weft-train's do: the same buckets,
calls and order. Columns: ranks, time of a step in ms, what the ranks compute in it, what they wait for
communication, compute over step, and sequences a second. docs/prediction.md says what is modelled.
Exit codes: 0 good, 64 usage, 65 a file is bad, 70 internal, 73 an output cannot be written.)";

struct RawStep {
  RawPlace place;
  std::string params = "fp32", wire = "fp32";
  double computeMs = 0, bucketMb = 2;
  std::pair<double, double> pageNs;
  bool noOverlap = false, unfolded = false;
};

void addModel(CLI::App& app, RawStep& raw, StepOptions& options) {
  app.add_option("--model", options.model, "a model file, or one of weft-train's models")
      ->required();
  app.add_option("--compute-ms", raw.computeMs,
                 "forward and backward of a micro-step, of one of weft-train's models")
      ->check(tools::positive());
  app.add_option("--forward-part", options.compute.forwardPart, "of that; without, a third")
      ->check(tools::within(0.0, 1.0));
  app.add_option("--update-ns", options.updateNs,
                 "of the optimizer, for each element that a rank owns, of such a model")
      ->check(tools::natural());
  app.add_option("--batch", options.batch, "sequences of one rank at a time")
      ->check(tools::positive())
      ->capture_default_str();
  app.add_option("--accumulate,--grad-accum", options.settings.accumulate,
                 "batches of one rank in a step")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option(
         "--tensor", options.settings.tensor,
         "ranks that share each layer: parameters and times of the model are of one of them")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
}

void addExchange(CLI::App& app, RawStep& raw, StepOptions& options) {
  app.add_option("--shard", options.shard,
                 "none, zero1, zero2, zero3, mics, or K,L,M ranks for weights, gradients, state")
      ->capture_default_str();
  app.add_option("--bucket-mb", raw.bucketMb, "of fp32")
      ->check(tools::positive())
      ->capture_default_str();
  app.add_option("--params", raw.params, "what the model's weights are")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--wire", raw.wire, "what gradients are while they travel")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_flag("--no-overlap", raw.noOverlap, "reduce only after backward");
  app.add_option("--algo", options.run.algorithm, "force an algorithm on all calls that know it");
}

void addSimulation(CLI::App& app, RawStep& raw, StepOptions& options) {
  app.add_flag("--host-compute", options.run.computesOnCores,
               "ranks compute on the cores that also communicate, one each without --cores");
  app.add_option(
         "--page-ns", raw.pageNs,
         "GIVE,TOUCH of a core, for 4 KiB of what is sharded: to give them back to the "
         "system after their use, and to have them anew; without, with --host-compute and no "
         "--machine, as measured here, else 0")
      ->delimiter(',')
      ->check(tools::natural());
  app.add_flag("--exact", options.run.exact, "never spread a last segment, also from 128 ranks on");
  app.add_flag("--unfolded", raw.unfolded, "simulate each rank, also where some stand for all");
  app.add_option("-J,--json", options.json,
                 "write everything to this file as JSON; - is standard output");
  app.add_option("--trace", options.trace,
                 "write a timeline of the last row for ui.perfetto.dev (Chrome's format)");
}

reduce::DType typeOf(const std::string& name) {
  return name == "bf16" ? reduce::DType::BF16 : reduce::DType::F32;
}

PageCosts pagesOf(const CLI::App& app, const RawStep& raw, const StepOptions& options) {
  if (app.count("--page-ns") > 0)
    return {raw.pageNs.first / PageCosts::kPage, raw.pageNs.second / PageCosts::kPage};
  return options.run.computesOnCores && options.place.machine.empty() ? measurePages()
                                                                      : PageCosts();
}

void convertStep(const CLI::App& app, const RawStep& raw, StepOptions& options) {
  convert(app, raw.place, options.place);
  options.settings.bucketElements =
      static_cast<std::uint64_t>(std::max(raw.bucketMb * 1e6 / sizeof(float), 1.0));
  options.settings.paramType = typeOf(raw.params);
  options.settings.wireType = typeOf(raw.wire);
  options.settings.overlaps = !raw.noOverlap;
  options.run.folds = !raw.unfolded;
  options.settings.pages = pagesOf(app, raw, options);
  options.compute.ns = raw.computeMs * 1e6;
  const bool published = isPublishedModel(options.model), timed = app.count("--compute-ms") > 0;
  if (published && !timed)
    throw CLI::ValidationError("--compute-ms", "how long does " + options.model + " compute?");
  if (!published && (timed || app.count("--forward-part") > 0 || app.count("--update-ns") > 0))
    throw CLI::ValidationError("--compute-ms", "is for weft-train's models: a file has its times");
  perf::parsed("--shard", [&]() { return degreesOf(options.shard, 1, 1); });
}

}  // namespace

shard::Degrees degreesOf(const std::string& shard, std::uint32_t ranks, std::uint32_t localRanks) {
  try {
    const train::Degrees typed =
        train::parseDegrees(shard, static_cast<int>(ranks), static_cast<int>(localRanks));
    const auto of = [&](int degree) {
      return degree == 0 ? ranks : static_cast<std::uint32_t>(std::max(degree, 0));
    };
    return {of(typed.param), of(typed.grad), of(typed.state)};
  } catch (const train::Failure& failure) {
    throw std::invalid_argument(failure.what());
  }
}

std::variant<StepOptions, int> parseStepOptions(int argc, char** argv) {
  StepOptions options;
  RawStep raw;
  CLI::App app{"How long a training step takes on machines that are not here.", "weft-sim step"};
  app.footer(kStepFooter);
  tools::addVersion(app, "weft-sim");
  addModel(app, raw, options);
  addExchange(app, raw, options);
  addPlace(app, raw.place, options.place);
  CLI::Option* const nodes = app.get_option("--nodes");
  app.remove_option(nodes);
  app.add_option("--nodes", options.nodes, "so many nodes like the file's: a row for each number")
      ->delimiter(',')
      ->check(CLI::Range(1u, topology::kMostFabricNodes));
  addChanges(app, raw.place);
  addSimulation(app, raw, options);
  try {
    app.parse(argc, argv);
    convertStep(app, raw, options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  return options;
}

}  // namespace weft::simulator
