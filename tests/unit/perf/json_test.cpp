// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/temporary_folder.h"

namespace weft::perf {
namespace {

class JsonFile : public testing::Test {
 protected:
  JsonFile() {
    options_.collective = &parseCollective("all_reduce");
    options_.json = folder_ / "report.json";
  }

  nlohmann::json written() const {
    std::ifstream file(options_.json);
    return nlohmann::json::parse(file);
  }

  Row row() const {
    Row row{
        makeProblem(*options_.collective, typeInfo(weftFloat32), allOps()[0], -1, 0, 2, 4096, true),
        Measurement{},
        std::nullopt,
        {}};
    row.outOfPlace->seconds = 2e-6;
    row.outOfPlace->wrong = 3;
    row.outOfPlace->iterations = {1e-6, 3e-6};
    return row;
  }

  test::TemporaryFolder folder_;
  Options options_;
  char program_[10] = "weft-perf";
  char* argv_[2] = {program_, nullptr};
};

TEST_F(JsonFile, HoldsWhatTheTableSays) {
  JsonReport report(options_, 1, argv_);
  report.head({RankInfo{}});
  report.row(row());
  Summary summary;
  summary.add(row());
  report.foot(summary, {});
  report.write();

  const nlohmann::json json = written();
  EXPECT_EQ(json["args"][0], "weft-perf");
  EXPECT_EQ(json["devices"].size(), 1u);
  const nlohmann::json& result = json["results"].at(0);
  EXPECT_EQ(result["size"], 4096);
  EXPECT_EQ(result["count"], 1024);
  EXPECT_EQ(result["redop"], "sum");
  EXPECT_DOUBLE_EQ(result["out_of_place"]["time"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(result["out_of_place"]["bus_bw"].get<double>(), 2.048);
  EXPECT_EQ(result["out_of_place"]["nwrong"], 3);
  EXPECT_DOUBLE_EQ(result["out_of_place_per_iter"]["p99_us"].get<double>(), 3);
  EXPECT_TRUE(result["in_place"].is_null());
  EXPECT_EQ(json["out_of_bounds"]["okay"], false);
  EXPECT_EQ(json["average_bus_bandwidth"]["okay"], "unchecked");
}

TEST_F(JsonFile, KeepsSecretsOut) {
  setenv("WEFT_SECRET", "hunter2", 1);
  setenv("WEFT_TEST_OF_JSON", "shown", 1);
  JsonReport(options_, 1, argv_).write();
  unsetenv("WEFT_SECRET");
  unsetenv("WEFT_TEST_OF_JSON");
  const std::string text = written().dump();
  EXPECT_EQ(text.find("hunter2"), std::string::npos);
  EXPECT_NE(text.find("WEFT_TEST_OF_JSON=shown"), std::string::npos);
}

TEST_F(JsonFile, AnUnwritablePathFailsBeforeTheRun) {
  options_.json = "/nonexistent/folder/file.json";
  EXPECT_THROW(JsonReport(options_, 1, argv_), std::runtime_error);
}

}  // namespace
}  // namespace weft::perf
