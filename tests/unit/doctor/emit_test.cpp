// SPDX-License-Identifier: Apache-2.0
// What the schedulers would do with each exit code.
#include "tools/doctor/emit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "perf/common/exit_code.h"

namespace weft::doctor {
namespace {

constexpr int kRetried[] = {tools::kExitBad, tools::kExitLost, tools::kExitKilled};
constexpr int kFinal[] = {tools::kExitWrong,          tools::kExitUsage,
                          tools::kExitMismatch,       tools::kExitInternal,
                          tools::kExitCannotStart,    tools::kExitCannotWrite,
                          tools::kExitAuthentication, tools::kExitConfiguration};

// AWS Batch: the first rule that matches decides, and none is a retry.
std::string actionOf(const nlohmann::json& rules, int code) {
  for (const auto& rule : rules) {
    const std::string pattern = rule.value("onExitCode", "");
    const bool matches =
        pattern == "*" || pattern == std::to_string(code) || rule.value("onReason", "") == "*";
    if (matches) return rule.at("action");
  }
  return "RETRY";
}

TEST(Emit, AwsBatchRetriesWhatHelpsAndNothingElse) {
  const auto strategy =
      nlohmann::json::parse(schedulerConfig("aws-batch").value())["retryStrategy"];
  const auto& rules = strategy.at("evaluateOnExit");
  EXPECT_LE(rules.size(), 5u);
  EXPECT_GE(strategy.at("attempts"), 1);
  EXPECT_LE(strategy.at("attempts"), 10);
  for (const int code : kRetried) EXPECT_EQ(actionOf(rules, code), "RETRY") << code;
  for (const int code : kFinal) EXPECT_EQ(actionOf(rules, code), "EXIT") << code;
  EXPECT_EQ(actionOf(rules, 139), "EXIT");
}

// The numbers of each "values: [1, 2]".
std::vector<std::vector<int>> lists(const std::string& text) {
  std::vector<std::vector<int>> all;
  for (std::size_t at = 0; (at = text.find("values: [", at)) != text.npos; ++at) {
    std::istringstream numbers(text.substr(at + 9, text.find(']', at) - at - 9));
    all.emplace_back();
    for (std::string number; std::getline(numbers, number, ',');)
      all.back().push_back(std::stoi(number));
  }
  return all;
}

TEST(Emit, KubernetesFailsTheJobAtOnceWhereARetryCannotHelp) {
  const auto codes = lists(schedulerConfig("k8s").value());
  ASSERT_EQ(codes.size(), 2u);
  EXPECT_TRUE(std::ranges::equal(codes[0], kFinal));
  EXPECT_TRUE(std::ranges::equal(codes[1], kRetried));
  EXPECT_TRUE(std::ranges::is_sorted(codes[0]));  // Kubernetes refuses other orders
}

TEST(Emit, SlurmDrainsOnlyBadHosts) {
  const std::string config = schedulerConfig("slurm").value();
  EXPECT_NE(config.find("\nRequeueExit=69,75,137\n"), std::string::npos);
  EXPECT_NE(config.find("test $? -ne 69"), std::string::npos);
}

TEST(Emit, SlurmsPrologNeedsNoPath) {
  const std::string config = schedulerConfig("slurm").value();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  EXPECT_NE(config.find("\n" + self + " --quick"), std::string::npos);
}

TEST(Emit, OthersAreNotKnown) { EXPECT_FALSE(schedulerConfig("cron")); }

}  // namespace
}  // namespace weft::doctor
