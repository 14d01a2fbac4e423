// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/environment.h"

#include "tests/unit/doctor/with_variables.h"
#include "tools/checks/finding.h"

namespace weft::doctor {
namespace {

using checks::Finding;
using checks::HostReport;
using checks::Severity;

std::vector<Finding> findingsOf(const Variables& variables) {
  HostReport report;
  checkVariables(variables, report);
  return report.findings;
}

class Knobs : public WithVariables {
 protected:
  static std::vector<Finding> findings() {
    HostReport report;
    checkKnobs(report);
    return report.findings;
  }
};

TEST_F(Knobs, NoneIsHealthy) { EXPECT_TRUE(findings().empty()); }

TEST_F(Knobs, GoodOnesAreHealthy) {
  set("WEFT_LANES", "2");
  set("WEFT_ALGO", "ring");
  set("WEFT_SOCKET_IFNAME", "lo");
  set("WEFT_DEBUG", "info");
  for (const Finding& finding : findings()) ADD_FAILURE() << toText(finding);
}

TEST_F(Knobs, AnUnknownOneComesWithTheNearest) {
  set("WEFT_TRANSPROT", "shm");
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "env-unknown");
  EXPECT_NE(found[0].what.find("did you mean WEFT_TRANSPORT?"), std::string::npos) << found[0].what;
}

struct Refused {
  const char* name;
  const char* value;
};
class RefusedKnobs : public Knobs, public ::testing::WithParamInterface<Refused> {};

TEST_P(RefusedKnobs, AreFaultsWithAFix) {
  set(GetParam().name, GetParam().value);
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "env-invalid");
  EXPECT_EQ(found[0].severity, Severity::Fault);
  EXPECT_NE(found[0].what.find(GetParam().value), std::string::npos) << found[0].what;
  EXPECT_EQ(found[0].what.find("fix:"), std::string::npos) << found[0].what;
  EXPECT_FALSE(found[0].fix.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedKnobs,
    ::testing::Values(Refused{"WEFT_LANES", "99"}, Refused{"WEFT_REPRODUCIBLE", "maybe"},
                      Refused{"WEFT_CMA", "sometimes"}, Refused{"WEFT_ONE_SHOT_MAX", "1Q"},
                      Refused{"WEFT_ALGO", "rings"}, Refused{"WEFT_SOCKET_IFNAME", "nosuch0"},
                      Refused{"WEFT_TOPO_FILE", "/nowhere.topo"},
                      Refused{"WEFT_MESH_FILE", "/nowhere.mesh"},
                      Refused{"WEFT_SECRET_FILE", "/nowhere.secret"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Environment, OfOtherKindsIsHealthy) {
  EXPECT_TRUE(
      findingsOf({{"PATH", "/bin"}, {"FI_PROVIDER", "efa"}, {"FI_LOG_LEVEL", "warn"}}).empty());
}

TEST(Environment, VariablesOfOtherLibrariesAreNotedUnlessOursIsSet) {
  const auto found = findingsOf({{"NCCL_SOCKET_IFNAME", "eth1"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "env-other-library");
  EXPECT_EQ(found[0].severity, Severity::Note);
  EXPECT_NE(found[0].fix.find("WEFT_SOCKET_IFNAME"), std::string::npos);
  EXPECT_TRUE(findingsOf({{"NCCL_SOCKET_IFNAME", "eth1"}, {"WEFT_SOCKET_IFNAME", "eth1"}}).empty());
}

TEST(Environment, VariablesThatWorkAgainstEachOtherAreFound) {
  const Variables conflicts[] = {
      {{"FI_PROVIDER", "verbs"}},
      {{"FI_PROVIDER", "^tcp,efa"}},
      {{"FI_PROVIDER", "tcp"}, {"WEFT_OFI_PROVIDER", "efa"}},
      {{"FI_EFA_USE_DEVICE_RDMA", "0"}, {"WEFT_OFI_MODE", "rdma"}},
      {{"FI_LOG_LEVEL", "trace"}},
      {{"WEFT_SECRET", "a"}, {"WEFT_SECRET_FILE", "b"}},
  };
  for (const Variables& variables : conflicts) {
    const auto found = findingsOf(variables);
    ASSERT_EQ(found.size(), 1u) << variables.begin()->first;
    EXPECT_EQ(found[0].kind, "env-conflict");
  }
  EXPECT_TRUE(findingsOf({{"FI_PROVIDER", "tcp;ofi_rxm"}}).empty());
  EXPECT_TRUE(findingsOf({{"FI_PROVIDER", "^shm"}}).empty());
}

TEST(Environment, SecretsAreNotShown) {
  HostReport report;
  checkVariables({{"WEFT_SECRET", "hidden"}, {"WEFT_LANES", "2"}}, report);
  ASSERT_NE(report.find("env.WEFT_SECRET"), nullptr);
  EXPECT_EQ(report.find("env.WEFT_SECRET")->text, "(not shown)");
  EXPECT_EQ(report.find("env.WEFT_LANES")->text, "2");
}

}  // namespace
}  // namespace weft::doctor
