// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/options.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/weft-perf/numbers.h"
#include "perf/weft-perf/parsed.h"
#include "tools/sim/changes.h"
#include "topology/fabric_file.h"

namespace weft::simulator {
namespace {

constexpr const char* kFooter = R"(
Examples
  weft-sim all_reduce --topology dl1.24xlarge.topo --nodes 16 -b 1M -e 1G -f 4
  weft-sim all_reduce --topology dl1.24xlarge.topo -b 64M -e 64M --half-nic 0:efa0 --trace cut.json
  weft-sim all_gather --topology p4d.24xlarge.topo -b 1M -e 1M --jitter 1
  weft-sim all_reduce --topology dl1.24xlarge.topo --nodes 16 -b 8 -e 1G -f 8 --ways
  weft-sim step --help          training steps
  weft-sim --paper dl1          published scaling tables, beside what is predicted of them (dl1, neox, gptj)

It binds the plans that weft's ranks would run there and runs their ops on the clock. Columns: size of
the larger buffer in bytes, time in microseconds, busbw in GB/s (10^9 bytes) as in nccl-tests, the least
time that the links allow, and what part of it the time is; how many ranks stand for all; and the
busiest links with the part of the time that they are full. docs/prediction.md says what is modelled.
Exit codes: 0 good, 64 usage, 65 the topology or the machine file is bad, 70 internal, 73 an output
cannot be written.)";

// The flags as typed, where their type is not that of Options.
struct Raw {
  std::string collective, type = "float", min = "1M", max = "1M", step = "1M", buffers = "any";
  RawPlace place;
  double spread = 10;
  bool unfolded = false;
};

void addCall(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("collective", raw.collective, "nccl-tests' name: all_reduce, all_gather, ...")
      ->required();
  app.add_option("-b,--minbytes", raw.min, "smallest size")->capture_default_str();
  app.add_option("-e,--maxbytes", raw.max, "largest size")->capture_default_str();
  app.add_option("-i,--stepbytes", raw.step, "increment between sizes")->capture_default_str();
  app.add_option("-f,--stepfactor", options.factor, "factor between sizes, instead of -i")
      ->check(tools::natural(0x1p64));
  app.add_option("-d,--datatype", raw.type, "int8 ... float bfloat16")->capture_default_str();
  app.add_option("-r,--root", options.root, "rank of the root")->check(CLI::Range(0, 1 << 26));
  app.add_option("--algo", options.algorithm,
                 "force an algorithm, or a schedule of MSCCL (FILE.xml) or MSCCL++ (FILE.json); "
                 "without, weft's model chooses "
                 "as it would there");
  app.add_option("--buffers", raw.buffers, "any memory, or own: all of it of weftMemAlloc")
      ->check(CLI::IsMember({"any", "own"}))
      ->capture_default_str();
}

void addNoise(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("--jitter", options.seed, "times are drawn from this seed on, --draws times")
      ->check(tools::natural(0x1p64));
  app.add_option("--jitter-percent", raw.spread, "a standard deviation of each time")
      ->check(tools::within(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--draws", options.draws, "for the interval")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  CLI::Option* const even =
      app.add_flag("--even", options.evens,
                   "spread a last segment over its chunks, so that more ranks are alike");
  app.add_flag("--exact", options.exact, "never do so, also from 128 ranks on")->excludes(even);
  app.add_flag("--unfolded", raw.unfolded, "simulate each rank, also where some stand for all");
}

void addOutput(CLI::App& app, Options& options) {
  app.add_option("--links", options.links, "how many of the busiest are printed")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_flag("--ways", options.ways,
               "simulate all that the model may choose, too, and tell what its choice costs");
  app.add_option("-J,--json", options.json,
                 "write everything to this file as JSON; - is standard output");
  CLI::Option* const timeline =
      app.add_option("--trace", options.trace,
                     "write a timeline of the last size for ui.perfetto.dev (Chrome's format)");
  app.add_option("--measured", options.measured,
                 "put what weft-perf --trace has written into that timeline, too")
      ->check(CLI::ExistingFile)
      ->needs(timeline);
  app.add_option("--goal", options.goal,
                 "write what each rank does at the last size as GOAL, for LogGOPSim; FILE.bin: in "
                 "its binary form");
}

void convert(const CLI::App& app, const Raw& raw, Options& options) {
  using perf::parsed;
  options.collective =
      parsed("collective", [&]() { return &perf::parseCollective(raw.collective); });
  if (!options.collective->plans)
    throw CLI::ValidationError("collective", "point to point: there is no plan to simulate");
  options.minBytes = parsed("-b", [&]() { return perf::parseSize(raw.min); });
  options.maxBytes = parsed("-e", [&]() { return perf::parseSize(raw.max); });
  options.stepBytes = parsed("-i", [&]() { return perf::parseSize(raw.step); });
  const std::vector<perf::TypeInfo> types =
      parsed("-d", [&]() { return perf::parseTypes(raw.type); });
  if (types.size() != 1) throw CLI::ValidationError("-d", "one type");
  options.type = types.front();
  if (options.minBytes > options.maxBytes) throw CLI::ValidationError("-b", "is larger than -e");
  if (options.factor <= 1 && options.stepBytes == 0 && options.minBytes < options.maxBytes)
    throw CLI::ValidationError("-i", "0 never reaches -e; give a step, or a factor with -f");
  options.ownBuffers = raw.buffers == "own";
  options.folds = !raw.unfolded;
  if (app.count("--jitter") > 0) options.sigma = raw.spread / 100;
  convert(app, raw.place, options);
  if (options.ways && !options.algorithm.empty())
    throw CLI::ValidationError("--ways", "nothing is left to choose with --algo");
  if (!options.goal.empty() && (options.sigma > 0 || !options.stragglers.empty()))
    throw CLI::ValidationError("--goal", "GOAL has no jitter and no stragglers");
}

}  // namespace

void addPlace(CLI::App& app, RawPlace& raw, Place& place) {
  app.add_option("--topology", place.topology, "a topology file (weft-topo)")->required();
  app.add_option("--nodes", place.nodes, "so many nodes like the file's")
      ->check(CLI::Range(1u, topology::kMostFabricNodes));
  app.add_option("--ranks-per-node", place.ranksOfNode, "the first so many of each")
      ->check(CLI::Range(1u, topology::kMostRanksOfANode));
  app.add_option("--machine", place.machine,
                 "a recorded machine (WEFT_TUNE_FILE); without, this one is measured");
  app.add_option("--cores", place.coresOfNode, "cores of a node; without, one for each rank")
      ->check(CLI::Range(1, 4096));
  app.add_option("--numa", place.numaNodes, "NUMA nodes of a node")->check(CLI::Range(1, 64));
  app.add_option("--memory-rate", place.memoryRate,
                 "GB/s that a node's memory carries, reads and writes; without, no more limit than "
                 "that of each core")
      ->check(tools::positive());
  app.add_option("--message-us", raw.messageUs,
                 "a core's time for a message on a link; without, as the model assumes")
      ->check(tools::natural());
}

void addChanges(CLI::App& app, RawPlace& raw) {
  app.add_option("--without-link", raw.without, "NODE:A-B or NODE:RAIL; NODE may be all");
  app.add_option("--slow-link", raw.slow, "NODE:A-B:FACTOR or NODE:RAIL:FACTOR of its rate");
  app.add_option("--half-nic", raw.half, "NODE:RAIL");
  app.add_option("--straggler", raw.stragglers, "RANK:FACTOR of its core's times");
}

void convert(const CLI::App& app, const RawPlace& raw, Place& place) {
  using perf::parsed;
  if (app.count("--message-us") > 0) place.messageNs = raw.messageUs * 1e3;
  for (const std::string& text : raw.without)
    place.changes.push_back(parsed("--without-link", [&]() { return parseChange(text, 0); }));
  for (const std::string& text : raw.slow)
    place.changes.push_back(parsed("--slow-link", [&]() { return parseSlowLink(text); }));
  for (const std::string& text : raw.half)
    place.changes.push_back(parsed("--half-nic", [&]() { return parseChange(text, 0.5); }));
  for (const std::string& text : raw.stragglers)
    place.stragglers.push_back(parsed("--straggler", [&]() { return parseStraggler(text); }));
}

std::variant<Options, int> parseOptions(int argc, char** argv) {
  Options options;
  Raw raw;
  CLI::App app{"How long collectives take on machines that are not here."};
  app.footer(kFooter);
  tools::addVersion(app, "weft-sim");
  addCall(app, raw, options);
  addPlace(app, raw.place, options);
  addChanges(app, raw.place);
  addNoise(app, raw, options);
  addOutput(app, options);
  try {
    app.parse(argc, argv);
    convert(app, raw, options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  return options;
}

}  // namespace weft::simulator
