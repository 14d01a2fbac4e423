// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/transports.h"

#include <gtest/gtest.h>

#include "perf/common/exit_code.h"

namespace weft::doctor {
namespace {

using checks::HostReport;
using checks::Library;

const Probe kShm{"shm", 0, "shm"};
const Probe kVerbs{"verbs", 0, "verbs, mlx5_0"};
const Probe kNoVerbs{"verbs", tools::kExitConfiguration, "verbs: no device", "load its driver"};
const Probe kOfi{"ofi", 0, "tcp;ofi_rxm rdma, lo"};

HostReport judged(std::vector<Probe> probes, Devices devices = {}) {
  HostReport report{"a", {}, {}};
  checkTransports(probes, devices, report);
  return report;
}

TEST(Transports, OfAHostWithoutRdmaAreHealthy) {
  const HostReport report = judged({kShm, kNoVerbs, kOfi});
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.find("transport.between-processes")->text, "shm");
  EXPECT_EQ(report.find("transport.between-hosts")->text, "ofi (tcp;ofi_rxm rdma)");
  EXPECT_NE(report.find("transport.verbs")->text.find("no device"), std::string::npos);
}

TEST(Transports, VerbsGoesFirstBetweenHosts) {
  EXPECT_EQ(judged({kShm, kVerbs, kOfi}).find("transport.between-hosts")->text, "verbs (verbs)");
}

TEST(Transports, DevicesThatDoNotWorkAreFound) {
  const HostReport report = judged({kShm, kNoVerbs, kOfi}, {.roce = true});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, "transport-broken");
  EXPECT_EQ(report.findings[0].what, "RoCE devices are here, but verbs: verbs: no device");
  EXPECT_EQ(report.findings[0].fix, "load its driver");
  const Probe noOfi{"ofi", -1, "killed"};
  EXPECT_EQ(judged({kShm, noOfi}, {.efa = true}).findings.size(), 1u);
  EXPECT_TRUE(judged({kShm, noOfi}).findings.empty());
}

TEST(Transports, RanksThatCannotMeetAreAFault) {
  const HostReport report = judged({{"shm", tools::kExitConfiguration, "memfd: no"}, kOfi});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, "transport-none");
}

TEST(Transports, AWishThatMakesNoSenseIsASetting) {
  const HostReport report =
      judged({kShm, {"", tools::kExitUsage, "unknown transport 'x'", "auto"}});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, "env-invalid");
  EXPECT_EQ(judged({kShm, {"", tools::kExitLost, "no link"}}).findings.at(0).kind,
            "transport-broken");
}

TEST(Devices, OfAmazonAreEfa) {
  checks::Nic nic;
  nic.rdma = true;
  nic.model = "0x1d0f:0xefa1";
  EXPECT_TRUE(devicesOf({nic}).efa);
  EXPECT_FALSE(devicesOf({nic}).roce);
  nic.model = "0x15b3:0x101d";
  EXPECT_TRUE(devicesOf({nic}).roce);
  nic.rdma = false;
  EXPECT_FALSE(devicesOf({nic}).roce);
}

TEST(Libraries, AreMissedOnlyWhereTheyAreNeeded) {
  const std::vector<Library> libraries = {
      {"libibverbs", "libibverbs.so.1", "", "libibverbs1", "", "no"},
      {"libfabric", "libfabric.so.1", "", "libfabric1", "", "no"},
      {"libpmix", "libpmix.so.2", "", "libpmix2", "", "no"}};
  const auto missing = [&](Devices devices, const Job& job) -> std::string {
    HostReport report;
    checkLibraries(libraries, devices, job, report);
    return report.findings.empty() ? "" : report.findings[0].what.substr(0, 12);
  };
  EXPECT_EQ(missing({}, {}), "");
  EXPECT_EQ(missing({.roce = true}, {}), "libibverbs.s");
  EXPECT_EQ(missing({.efa = true}, {}), "libfabric.so");
  EXPECT_EQ(missing({}, {"Slurm", 8, 4}), "libfabric.so");
  EXPECT_EQ(missing({}, {"PMIx", 4, 4}), "libpmix.so.2");
}

TEST(Libraries, ThatWeftIsLinkedWithAreHere) {
  for (const Library& library : checks::openLibraries()) {
    EXPECT_NE(library.version.empty(), library.problem.empty()) << library.name;
    if (library.name != "libcrypto") continue;
    EXPECT_NE(library.version.find("OpenSSL"), std::string::npos);
  }
}

}  // namespace
}  // namespace weft::doctor
