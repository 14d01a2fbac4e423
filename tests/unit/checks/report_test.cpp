// SPDX-License-Identifier: Apache-2.0
// Reports, findings and their table: what is written can be read again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tools/checks/json.h"
#include "tools/checks/kinds.h"
#include "tools/checks/units.h"

namespace weft::checks {
namespace {

TEST(Json, AReportComesBack) {
  HostReport report;
  report.host = "a";
  report.add("memory.bandwidth", 12.5, "GB/s");
  report.add("limits.memlock", kUnlimited, "bytes");
  report.add("cpu.model", "Some \"CPU\"");
  report.findings.push_back(makeFinding("memory-corrupt", "host a", "bit 3", 0.5));
  const auto again = reportFromJson(nlohmann::json::parse(toJson(report).dump()));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->host, "a");
  EXPECT_EQ(again->find("memory.bandwidth")->value, 12.5);
  EXPECT_EQ(again->find("memory.bandwidth")->unit, "GB/s");
  EXPECT_EQ(again->find("limits.memlock")->value, kUnlimited);
  EXPECT_EQ(again->find("cpu.model")->text, "Some \"CPU\"");
  ASSERT_EQ(again->findings.size(), 1u);
  EXPECT_EQ(toText(again->findings[0]), toText(report.findings[0]));
  EXPECT_EQ(again->findings[0].weight, 0.5);
}

TEST(Json, AnythingElseIsRefused) {
  for (
      const char* text :
      {"1", "[]", "{}", R"({"host":1,"facts":[],"findings":[]})",
       R"({"host":"a","facts":[{"value":1}],"findings":[]})",
       R"({"host":"a","facts":[],"findings":[{"severity":"dire","kind":"","culprit":"","what":"","fix":"","weight":0}]})"})
    EXPECT_FALSE(reportFromJson(nlohmann::json::parse(text))) << text;
  EXPECT_FALSE(findingFromJson("fault"));
}

TEST(Units, AreThoseThatPeopleRead) {
  EXPECT_EQ(inBytes(65536), "64 KiB");
  EXPECT_EQ(inBytes(1.5 * (1 << 30)), "1.5 GiB");
  EXPECT_EQ(inBytes(0), "0 bytes");
  EXPECT_EQ(inBytes(kUnlimited), "unlimited");
  EXPECT_EQ(inCount(1024), "1024");
  EXPECT_EQ(valueOf({"a", 2.5, "", "GB/s"}), "2.5 GB/s");
  EXPECT_EQ(valueOf({"a", 0, "text", ""}), "text");
}

TEST(Findings, HaveTheErrorOfWeftAsData) {
  Finding finding = makeFinding("rank-lost", "rank 3", "It died.");
  EXPECT_EQ(finding.what, "It died");
  EXPECT_FALSE(toJson(finding).contains("error"));
  finding.error = ErrorInfo{.rank = 3, .host = "b", .message = "it died", .missingRanks = {1, 3}};
  const nlohmann::json error = toJson(finding).at("error");
  EXPECT_EQ(error.at("rank"), 3);
  EXPECT_EQ(error.at("host"), "b");
  EXPECT_EQ(error.at("missing_ranks"), nlohmann::json({1, 3}));
  EXPECT_FALSE(error.contains("device"));
}

TEST(Kinds, HaveNamesOfTheirOwnAndAllTheirWords) {
  std::set<std::string_view> names;
  for (const Kind& kind : kKinds) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_TRUE(kind.meaning.ends_with('.')) << kind.name;
    EXPECT_TRUE(kind.cause.ends_with('.')) << kind.name;
    EXPECT_FALSE(kind.fix.empty() || kind.fix.ends_with('.')) << kind.name;
  }
}

TEST(Kinds, TheWorstFaultGivesTheExitCode) {
  const Finding host = makeFinding("memory-corrupt", "", "", 0.5);
  const Finding settings = makeFinding("env-invalid", "", "", 0.9);
  const Finding warning = makeFinding("memory-slow", "", "", 1);
  EXPECT_EQ(exitCodeOf({}), tools::kExitHealthy);
  EXPECT_EQ(exitCodeOf(std::vector{warning}), tools::kExitHealthy);
  EXPECT_EQ(exitCodeOf(std::vector{warning, host}), tools::kExitBad);
  EXPECT_EQ(exitCodeOf(std::vector{host, settings}), tools::kExitConfiguration);
}

// weft-doctor --kinds prints what belongs there.
TEST(Kinds, AreInTheOperatorsPage) {
  std::stringstream page;
  page << std::ifstream(std::filesystem::path(__FILE__).parent_path() /
                        "../../../docs/operating.md")
              .rdbuf();
  EXPECT_NE(page.str().find("## Findings\n"), std::string::npos);
  EXPECT_NE(page.str().find(kindsAsMarkdown()), std::string::npos);
}

}  // namespace
}  // namespace weft::checks
