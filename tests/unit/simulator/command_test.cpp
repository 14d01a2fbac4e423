// SPDX-License-Identifier: Apache-2.0
// weft-sim as a command: what it prints and writes, and what its exit code says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/command.h"
#include "tests/unit/slow_build.h"

namespace weft::simulator {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using test::Outcome;

std::string source(const char* path) {
  return fs::path(__FILE__).parent_path() / "../../.." / path;
}

class Command : public ::testing::Test {
 protected:
  Command() : folder_(fs::path(::testing::TempDir()) / ("weft_sim_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Command() override { fs::remove_all(folder_); }
  std::string file(const char* name) const { return folder_ / name; }
  std::string write(const char* name, const std::string& lines) const {
    std::ofstream(file(name)) << lines;
    return file(name);
  }

  static Outcome run(const std::string& arguments) {
    return test::runCommand(test::toolBeside("weft-sim") + " " + arguments + " --machine " +
                            source("tests/machines/sapphire_rapids.machine") + " 2>&1");
  }
  static Outcome onDl1(const std::string& arguments) {
    return run(arguments + " --topology " + source("examples/topologies/dl1.24xlarge.topo"));
  }
  json rowsOf(const std::string& arguments) const {
    const Outcome o = onDl1(arguments + " --json " + file("out.json"));
    EXPECT_EQ(o.exitCode, 0) << o.output;
    return json::parse(std::ifstream(file("out.json")))["rows"];
  }
  double ns(const std::string& arguments) const { return rowsOf(arguments)[0]["time_ns"]; }

 private:
  const fs::path folder_;
};

TEST_F(Command, PrintsALineForEachSize) {
  const Outcome o = onDl1("all_reduce -b 1K -e 1M -f 32");
  EXPECT_EQ(o.exitCode, 0) << o.output;
  EXPECT_NE(o.output.find("32 ranks on 4 nodes"), std::string::npos) << o.output;
  for (const char* size : {" 1024 ", " 32768 ", " 1048576 "})
    EXPECT_NE(o.output.find(size), std::string::npos) << o.output;
}

TEST_F(Command, TellsWhatElseMightBeChosenAndWhatTheChoiceCosts) {
  const Outcome o = onDl1("all_reduce -b 8 -e 8 --ways");
  EXPECT_EQ(o.exitCode, 0) << o.output;
  EXPECT_TRUE(std::regex_search(o.output, std::regex("us; the model: +[0-9.]+ us; one-shot")))
      << o.output;
  EXPECT_NE(o.output.find(", chosen"), std::string::npos) << o.output;
  EXPECT_TRUE(std::regex_search(o.output, std::regex("# regret of the choice: 1\\."))) << o.output;
  const json choice = rowsOf("all_reduce -b 8 -e 8 --ways")[0]["choice"];
  EXPECT_GE(choice["regret"], 1);
  ASSERT_GT(choice["ways"].size(), 3u);
  EXPECT_LE(choice["ways"][0]["time_ns"], choice["ways"][1]["time_ns"]);
  const Outcome forced = onDl1("all_reduce -b 8 -e 8 --ways --algo one-shot");
  EXPECT_EQ(forced.exitCode, 64);
  EXPECT_NE(forced.output.find("nothing is left to choose with --algo"), std::string::npos);
}

TEST_F(Command, ItsKeysHaveUnits) {
  const json rows = rowsOf("all_gather -b 1M -e 1M");
  ASSERT_EQ(rows.size(), 1u);
  const json& row = rows[0];
  for (const char* key : {"size_bytes", "time_ns", "busbw_gbytes_per_s", "cut_bound_ns",
                          "flow_bound_ns", "bound_share", "simulation_s"})
    EXPECT_TRUE(row[key].is_number()) << key;
  EXPECT_GT(row["time_ns"], row["cut_bound_ns"]);
  EXPECT_GE(row["time_ns"], row["flow_bound_ns"]);
  ASSERT_EQ(row["busiest_links"].size(), 3u);
  EXPECT_GT(row["busiest_links"][0]["carried_bytes"], 0);
}

// The op list is the one that the engine runs: weft-perf prints the same fingerprint.
TEST_F(Command, ItsPlansAreThoseOfWeftPerf) {
  const std::string machine = source("tests/machines/sapphire_rapids.machine");
  const std::string host =
      write("host.topo", "weft-topology 1\nnodes 1 ranks 2\nmemory gbit 100 us 1\n");
  const std::regex hash("\\(([0-9a-f]{16})\\)");
  for (const char* call : {"all_reduce -b 64K -e 64K", "all_gather -b 8 -e 8",
                           "broadcast -b 4M -e 4M", "all_reduce -b 4M -e 4M --algo ring"}) {
    const Outcome sim = run(call + std::string(" --cores 1 --topology ") + host);
    const Outcome perf = test::runCommand("WEFT_TUNE_FILE=" + machine + " taskset -c 0 " +
                                          test::toolBeside("weft-perf") + " " + call +
                                          " --ranks 2 -n 1 -w 0 -c 0 --explain 2>&1");
    std::smatch ours, theirs;
    ASSERT_TRUE(std::regex_search(sim.output, ours, hash)) << sim.output;
    ASSERT_TRUE(std::regex_search(perf.output, theirs, hash)) << perf.output;
    EXPECT_EQ(ours[1], theirs[1]) << call << "\n" << sim.output << perf.output;
  }
}

TEST_F(Command, FoldingChangesNothing) {
  for (const char* algorithm : {"mesh", "ring", "two-level", "two-level-ring", "one-shot"}) {
    const std::string call = std::string("all_reduce -b 1M -e 1M --even --algo ") + algorithm;
    const json folded = rowsOf(call)[0], whole = rowsOf(call + " --unfolded")[0];
    EXPECT_LT(folded["simulated_ranks"], 32) << algorithm;
    EXPECT_EQ(whole["simulated_ranks"], 32) << algorithm;
    EXPECT_NEAR(folded["time_ns"], whole["time_ns"], 0.1) << algorithm;
  }
}

TEST_F(Command, WhatIfsCost) {
  const std::string bytes = test::kSlowBuild ? "2M" : "64M";  // segments to simulate
  const std::string call = "all_gather --algo mesh -b " + bytes + " -e " + bytes;
  const double quiet = ns(call);
  EXPECT_GT(ns(call + " --half-nic 0:efa0"), 1.5 * quiet);
  EXPECT_GT(ns(call + " --slow-link 2:efa3:0.25"), 2 * quiet);
  EXPECT_GT(ns(call + " --slow-link all:0-1:0.01"), quiet);
  EXPECT_GT(ns(call + " --without-link 1:4-5"), quiet);
  EXPECT_GT(ns(call + " --straggler 3:100"), quiet);
  EXPECT_GT(ns(call + " --memory-rate 1"), quiet);
  EXPECT_GT(ns(call + " --cores 1"), quiet);
  EXPECT_GE(ns(call + " --numa 2"), quiet);
  EXPECT_LT(ns("barrier --message-us 0"), ns("barrier"));
}

TEST_F(Command, JitterGivesAnInterval) {
  const json row = rowsOf("all_reduce -b 1M -e 1M --jitter 1 --draws 5")[0];
  EXPECT_LT(row["interval_5_percent_ns"], row["interval_95_percent_ns"]);
  EXPECT_EQ(row, [&]() {
    json again = rowsOf("all_reduce -b 1M -e 1M --jitter 1 --draws 5")[0];
    again["simulation_s"] = row["simulation_s"];
    return again;
  }());
}

TEST_F(Command, WritesATrace) {
  const Outcome o = onDl1("all_reduce -b 64K -e 64K --trace " + file("trace.json"));
  ASSERT_EQ(o.exitCode, 0) << o.output;
  const json trace = json::parse(std::ifstream(file("trace.json")));
  std::map<std::string, int> events;
  for (const json& event : trace["traceEvents"]) ++events[event["ph"]];
  EXPECT_GT(events["X"], 32);
  EXPECT_GT(events["b"], 32);
  EXPECT_EQ(events["b"], events["e"]);
}

TEST_F(Command, PutsAMeasuredTraceBesideItsOwn) {
  const std::string own = "all_reduce -b 64K -e 64K --trace " + file("both.json");
  const Outcome perf = test::runCommand(test::toolBeside("weft-perf") +
                                        " all_reduce -b 64K -e 64K -n 2 --ranks 4 --trace " +
                                        file("measured.json") + " 2>&1");
  ASSERT_EQ(perf.exitCode, 0) << perf.output;
  ASSERT_EQ(onDl1(own + " --measured " + file("measured.json")).exitCode, 0);
  std::map<std::string, int> named;
  std::map<int, double> measured;  // by rank: the end of its last op, in us
  const json trace = json::parse(std::ifstream(file("both.json")));
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") ++named[event["args"]["name"]];
    if (event["ph"] != "X" || event["pid"] < 1000000) continue;
    EXPECT_GE(event["ts"], 0);
    measured[event["pid"]] = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(named["rank 3 predicted"], 1);
  EXPECT_EQ(named["rank 3 measured"], 1);
  EXPECT_EQ(measured.size(), 4u);
  const Outcome none = onDl1(own + " --measured " + write("none.json", "[]"));
  EXPECT_EQ(none.exitCode, 65);
  EXPECT_NE(none.output.find("holds no events of a trace"), std::string::npos) << none.output;
}

TEST_F(Command, AJobThatIsTooLargeForACommunicatorSaysSo) {
  const Outcome o = onDl1("all_reduce -b 8 -e 8 --nodes 1024 --algo two-level");
  EXPECT_EQ(o.exitCode, 0) << o.output;
  EXPECT_NE(o.output.find("arrival slots of this call alone: a communicator of 8192 ranks needs"),
            std::string::npos)
      << o.output;
}

// A schedule of others is one more algorithm, here and in weft-perf: the same op list.
TEST_F(Command, SchedulesOfOthersAreRead) {
  const std::string host =
      write("host.topo", "weft-topology 1\nnodes 1 ranks 4\nmemory gbit 100 us 1\n");
  const std::string ring = " --algo " + source("examples/schedules/all_reduce_ring_4.xml");
  const auto expectExit = [&](const std::string& call, int code, const char* line) {
    const Outcome o = run(call + " --topology " + host);
    EXPECT_EQ(o.exitCode, code) << o.output;
    EXPECT_NE(o.output.find(line), std::string::npos) << o.output;
  };
  expectExit("all_reduce" + ring, 0, "all-reduce ring (");
  expectExit("all_gather" + ring, 65, "is for all_reduce, not all_gather");
  expectExit("all_reduce --ranks-per-node 2" + ring, 65, "is for 4 ranks, not 2");
  expectExit("all_reduce --algo " + write("bad.xml", "<algo/>"), 65, "bad.xml:1: <algo> lacks");
  expectExit("all_reduce --algo missing.xml", 65, "missing.xml: cannot be read");
}

TEST_F(Command, BadFabricsAreRefusedWithFileAndLine) {
  const auto refused = [&](const std::string& lines, const std::string& why) {
    const Outcome o = run("all_reduce --topology " + write("bad.topo", lines));
    EXPECT_EQ(o.exitCode, 65) << o.output;
    EXPECT_NE(o.output.find(why), std::string::npos) << o.output;
  };
  refused("weft-topology 1\n\nnodes 2 ranks 2\nmesh all gbit 1 us 1\n",
          "bad.topo:3: rank 0 of node node0 reaches no other node");
  refused("weft-topology 1\nnodes 1 ranks 3\nmesh 0-1 gbit 1 us 1\n",
          "bad.topo:2: ranks 0 and 2 of node node0 are joined by no link, memory or rails");
  refused("weft-topology 1\nnodes 2 ranks 2\nrail a gbit 0 us 1 ranks all\n",
          "bad.topo:3: '0' is no rate in Gbit/s");
  refused("weft-topology 1\nnodes a b a ranks 2\n", "bad.topo:2: node 'a' stands twice");
  refused("weft-topology 1\nnodes 2 ranks 2\nrail a gbit 1 us 1 ranks 0,0\n",
          "bad.topo:3: rank 0 stands twice");
  EXPECT_EQ(run("all_reduce --topology " + file("missing.topo")).exitCode, 65);
}

TEST_F(Command, SizesOfNodesAreChecked) {
  const std::string uneven =
      write("uneven.topo",
            "weft-topology 1\nnodes a ranks 2\nnodes b ranks 1\nrail r gbit 1 us 1 ranks all\n");
  const Outcome repeated = run("all_reduce --nodes 3 --topology " + uneven);
  EXPECT_EQ(repeated.exitCode, 65) << repeated.output;
  EXPECT_NE(repeated.output.find("nodes differ in size"), std::string::npos) << repeated.output;
  EXPECT_EQ(run("all_reduce --topology " + uneven).exitCode, 0);
  EXPECT_EQ(onDl1("all_reduce --ranks-per-node 9").exitCode, 65);
  EXPECT_EQ(onDl1("all_reduce --ranks-per-node 4").exitCode, 0);
}

TEST_F(Command, WrongUseIsRefused) {
  for (const char* wrong : {"all_reduce --nonsense",
                            "sendrecv",
                            "all_reduce -b 2M",
                            "all_reduce -d all",
                            "all_reduce -i 0 -e 2M",
                            "all_reduce --algo nonsense",
                            "broadcast -r 32",
                            "all_reduce --straggler 32:2",
                            "all_reduce --straggler 1",
                            "all_reduce --straggler 1:0",
                            "all_reduce --half-nic efa0",
                            "all_reduce --half-nic 0:none",
                            "all_reduce --half-nic 4:efa0",
                            "all_reduce --slow-link 0:0-1",
                            "all_reduce --slow-link 0:0-1:2",
                            "all_reduce --nodes 0",
                            "all_reduce --jitter -1",
                            "all_reduce --jitter-percent nan",
                            "all_reduce -f -2",
                            "all_reduce --json ''"})
    EXPECT_EQ(onDl1(wrong).exitCode, 64) << wrong;
  EXPECT_EQ(onDl1("all_reduce --trace /nowhere/x").exitCode, 73);
  EXPECT_EQ(onDl1("all_reduce --json /nowhere/x").exitCode, 73);
  EXPECT_EQ(onDl1("all_reduce --algo /tmp").exitCode, 65);
}

// ---- weft-sim step

TEST_F(Command, AStepHasARowForEachNumberOfNodes) {
  const Outcome o = onDl1("step --model gpt --compute-ms 50 --nodes 1,2 --shard zero1 --json " +
                          file("step.json") + " --trace " + file("trace.json"));
  ASSERT_EQ(o.exitCode, 0) << o.output;
  const json out = json::parse(std::ifstream(file("step.json")));
  ASSERT_EQ(out["rows"].size(), 2u);
  for (const json& row : out["rows"]) {
    EXPECT_EQ(row["ranks"], 8 * row["nodes"].get<int>());
    EXPECT_NEAR(row["compute_ns"], 50e6, 1e3);
    EXPECT_GT(row["exposed_ns"], 0);
    EXPECT_NEAR(row["step_ns"], row["compute_ns"].get<double>() + row["exposed_ns"].get<double>(),
                1);
    EXPECT_LT(row["efficiency_share"], 1);
    EXPECT_GT(row["sequences_per_s"], 0);
    EXPECT_GT(row["least_sent_bytes"], 0);
  }
  std::map<std::string, int> events;
  const json trace = json::parse(std::ifstream(file("trace.json")));
  for (const json& event : trace["traceEvents"]) ++events[event.value("cat", "")];
  EXPECT_GT(events["compute"], 0);
  EXPECT_GT(events["call"], 0);
}

TEST_F(Command, AStepOfAFileIsSimulated) {
  const Outcome o = onDl1("step --model " + source("examples/models/gpt.model") +
                          " --tensor 4 --shard 1,2,4 --nodes 2 --accumulate 2");
  EXPECT_EQ(o.exitCode, 0) << o.output;
  EXPECT_NE(o.output.find("a step of gpt on dl1"), std::string::npos) << o.output;
}

TEST_F(Command, FoldingChangesNoStep) {
  for (const char* shard : {"mics", "none", "zero1", "zero3", "1,1,8"}) {
    if (test::kSlowBuild && shard != std::string_view("mics")) break;
    const auto stepNs = [&](const std::string& more) {
      const Outcome o = onDl1(std::string("step --model gpt --compute-ms 20 --nodes 4 --shard ") +
                              shard + more + " --json " + file("out.json"));
      EXPECT_EQ(o.exitCode, 0) << o.output;
      return json::parse(std::ifstream(file("out.json")))["rows"][0];
    };
    const json folded = stepNs(""), whole = stepNs(" --unfolded");
    EXPECT_LT(folded["simulated_ranks"], 32) << shard;
    EXPECT_EQ(whole["simulated_ranks"], 32) << shard;
    // Unfolded, the last chunks of a message are shorter where they do not divide it.
    EXPECT_NEAR(folded["step_ns"].get<double>() / whole["step_ns"].get<double>(), 1, 0.01) << shard;
  }
}

TEST_F(Command, RanksThatComputeOnTheirCoresTakeLonger) {
  const auto stepNs = [&](const std::string& more) {
    const Outcome o = onDl1("step --model gpt --compute-ms 20 --nodes 1 --shard zero1" + more +
                            " --json " + file("out.json"));
    EXPECT_EQ(o.exitCode, 0) << o.output;
    return json::parse(std::ifstream(file("out.json")))["rows"][0]["step_ns"].get<double>();
  };
  const double apart = stepNs("");
  EXPECT_GT(stepNs(" --host-compute"), apart);
  EXPECT_GT(stepNs(" --straggler 2:1.5"), 1.3 * apart);
  EXPECT_GT(stepNs(" --update-ns 1.5"), apart);
  EXPECT_GT(stepNs(" --no-overlap"), apart);
}

// Measured where this host computes, told, or nothing.
TEST_F(Command, StepsPayForTheMemoryOfWhatIsSharded) {
  const auto step = [&](const std::string& more) {
    const Outcome o = test::runCommand(
        test::toolBeside("weft-sim") + " step --model gpt --compute-ms 20 --nodes 1 --shard zero3" +
        " --topology " + source("examples/topologies/ethernet.topo") + more + " --json " +
        file("out.json"));
    EXPECT_EQ(o.exitCode, 0) << o.output;
    return json::parse(std::ifstream(file("out.json")));
  };
  EXPECT_EQ(step("")["touch_ns_per_page"], 0);
  EXPECT_GT(step(" --host-compute")["touch_ns_per_page"], 0);
  const json told = step(" --page-ns 1000,3000");
  EXPECT_NEAR(told["give_back_ns_per_page"], 1000, 1e-6);
  EXPECT_NEAR(told["touch_ns_per_page"], 3000, 1e-6);
}

TEST_F(Command, WrongStepsAreRefused) {
  const std::string good = "step --model gpt --compute-ms 1 ";
  EXPECT_EQ(onDl1(good + "--nodes 1").exitCode, 0);
  for (const std::string& wrong :
       {std::string("step"), std::string("step --model gpt"), good + "--shard nonsense",
        good + "--shard 3,3,3", good + "--tensor 5", good + "--nodes 0", good + "--compute-ms 0",
        good + "--bucket-mb 0", good + "--page-ns 1", good + "--page-ns -1,2",
        good + "--straggler 99:2",
        "step --model " + source("examples/models/gpt.model") + " --compute-ms 1"})
    EXPECT_EQ(onDl1(wrong).exitCode, 64) << wrong;
  EXPECT_EQ(onDl1(good + "--json /nowhere/x").exitCode, 73);
  const Outcome bad =
      onDl1("step --model " + write("bad.model", "weft-model 1\nlayer a forward-us x\n"));
  EXPECT_EQ(bad.exitCode, 65);
  EXPECT_NE(bad.output.find("bad.model:2: 'x' is no time"), std::string::npos) << bad.output;
  EXPECT_EQ(onDl1("step --model " + file("missing.model")).exitCode, 65);
}

// ---- weft-sim --paper

TEST_F(Command, PublishedTablesStandBesideWhatIsPredicted) {
  const Outcome o = run("--paper neox --json " + file("neox.json"));
  ASSERT_EQ(o.exitCode, 0) << o.output;
  EXPECT_NE(o.output.find("calibrates"), std::string::npos) << o.output;
  EXPECT_NE(o.output.find("assumed"), std::string::npos) << o.output;
  const json out = json::parse(std::ifstream(file("neox.json")));
  ASSERT_EQ(out["tables"].size(), 2u);
  ASSERT_EQ(out["tables"][0]["rows"].size(), 5u);
  EXPECT_EQ(out["tables"][0]["rows"][4]["published_sequences_per_s"], 212.0);
  EXPECT_TRUE(out["tables"][0]["rows"][4]["predicted"][0]["exchange_ns"].is_number());
  EXPECT_EQ(run("--paper gptj").exitCode, 0);
  EXPECT_EQ(run("--paper none").exitCode, 64);
}

}  // namespace
}  // namespace weft::simulator
