// SPDX-License-Identifier: Apache-2.0
// The checks that measure: memory, reductions, and all of them on this host.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/true_of_machine.h"
#include "tests/unit/checks/fake_tree.h"
#include "tools/checks/host.h"
#include "tools/checks/kernels.h"
#include "tools/checks/memory.h"
#include "tools/checks/reference.h"

namespace weft::checks {
namespace {

TEST(MemoryPattern, KeptIsNoFlip) {
  std::vector<std::uint64_t> memory(1000);
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    fillPattern(memory, pattern);
    EXPECT_FALSE(findFlip(memory, pattern)) << pattern;
  }
}

TEST(MemoryPattern, AnyFlippedBitIsFound) {
  std::vector<std::uint64_t> memory(257);
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::size_t word = bit * 4 + 1;
      fillPattern(memory, pattern);
      memory[word] ^= std::uint64_t{1} << bit;
      const auto flip = findFlip(memory, pattern);
      ASSERT_TRUE(flip) << pattern << ' ' << bit;
      EXPECT_EQ(flip->word, word);
      EXPECT_EQ(flip->expected ^ flip->found, std::uint64_t{1} << bit);
    }
  }
}

TEST(MemoryPattern, AWordFromAnotherAddressIsFound) {
  std::vector<std::uint64_t> memory(128);
  fillPattern(memory, 0);
  memory[3] = memory[67];
  EXPECT_TRUE(findFlip(memory, 0));
}

TEST(MemoryPattern, OfThisHostIsKept) {
  HostReport report;
  checkMemoryPattern(0.1, 2, 32 << 20, report);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_GE(report.find("memory.tested")->value, 8 << 20);
  EXPECT_LE(report.find("memory.tested")->value, 32 << 20);
}

TEST(MemorySpeed, IsMeasured) {
  HostReport report;
  checkMemorySpeed(0.02, 2, 16 << 20, report);
  EXPECT_GT(report.find("memory.bandwidth")->value, 0.01);
}

template <class T>
std::vector<T> valuesOf(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The reference, once more by other means.
TEST(Reference, OfDoublesIsTheSum) {
  std::vector<double> sum(50, 0.0);
  for (int rank = 0; rank < 4; ++rank) {
    const auto input = valuesOf<double>(inputOf(weftFloat64, weftSum, 50, 9, rank));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  }
  EXPECT_EQ(valuesOf<double>(resultOf(weftFloat64, weftSum, 50, 9, 4)), sum);
}

TEST(Reference, OfIntegersIsTheAverageTowardZero) {
  std::vector<int> sum(50, 0);
  for (int rank = 0; rank < 4; ++rank) {
    const auto input = valuesOf<std::int8_t>(inputOf(weftInt8, weftAvg, 50, 9, rank));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  }
  const auto average = valuesOf<std::int8_t>(resultOf(weftInt8, weftAvg, 50, 9, 4));
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(average[i], sum[i] / 4);
}

TEST(Reference, OfBitsIsThatOfTheLanguage) {
  std::vector<std::uint32_t> all(50, 0);
  for (int rank = 0; rank < 4; ++rank) {
    const auto input = valuesOf<std::uint32_t>(inputOf(weftUint32, weftBxor, 50, 9, rank));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] ^= input[i];
  }
  EXPECT_EQ(valuesOf<std::uint32_t>(resultOf(weftUint32, weftBxor, 50, 9, 4)), all);
}

TEST(Reference, InputsDifferByRankAndSeed) {
  const auto input = inputOf(weftBfloat16, weftSum, 20, 1, 0);
  EXPECT_EQ(input, inputOf(weftBfloat16, weftSum, 20, 1, 0));
  EXPECT_NE(input, inputOf(weftBfloat16, weftSum, 20, 1, 1));
  EXPECT_NE(input, inputOf(weftBfloat16, weftSum, 20, 2, 0));
}

TEST(Kernels, OfThisHostAreRight) {
  HostReport report;
  checkKernels({0}, 0, report);
  for (const Finding& finding : report.findings) ADD_FAILURE() << toText(finding);
  EXPECT_EQ(report.find("kernels.cores-tested")->value, 1);
}

TEST(Kernels, ATransportThatIsNoneIsASetting) {
  HostReport report;
  checkKernels({0}, 0, report, "nonsense");
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, "env-invalid");
  EXPECT_NE(report.findings[0].what.find("nonsense"), std::string::npos);
}

using HostWithFaults = FakeTree;

// All that is read is read below the root; what is measured is this host's, and so are its clocks.
TEST_F(HostWithFaults, NamesThemWorstFirst) {
  write("/sys/devices/system/edac/mc/mc0/ue_count", "2");
  write("/sys/devices/system/node/online", "0-1");
  write("/sys/devices/system/node/node0/cpulist", "0");
  write("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1048576 kB");
  write("/sys/devices/system/node/node1/cpulist", "1");
  write("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 262144 kB");
  write("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB");
  HostOptions options;
  options.seconds = 0.1;
  options.root = root();
  HostReport report = checkHost(options);
  std::erase_if(report.findings, [](const Finding& f) { return f.kind.starts_with("clock-"); });
  ASSERT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.findings[0].kind, "memory-ecc");
  EXPECT_EQ(report.findings[0].severity, Severity::Fault);
  EXPECT_EQ(report.findings[0].culprit, "host " + report.host);
  EXPECT_EQ(report.findings[1].kind, "numa-uneven");
  EXPECT_EQ(report.findings[2].kind, "shm-small");
  EXPECT_LE(report.find("memory.tested")->value, 64 << 20);  // an eighth of what is left
}

TEST(Host, ThatRunsTheTestsIsHealthy) {
  HostOptions options;
  options.seconds = 0.3;
  double last = 0;
  bool rises = true;
  const HostReport report = checkHost(options, [&](double done, std::string_view) {
    rises &= done >= last;
    last = done;
  });
  for (const Finding& finding : report.findings) {
    EXPECT_NE(finding.severity, Severity::Fault) << toText(finding);
    if (!test::isTrueOfMachine(finding.kind)) {
      EXPECT_EQ(finding.severity, Severity::Note) << toText(finding);
    }
    EXPECT_FALSE(finding.fix.empty());
  }
  EXPECT_TRUE(rises);
  EXPECT_EQ(last, 1);
  EXPECT_FALSE(report.host.empty());
  for (const char* fact : {"memory.bandwidth", "memory.tested", "clock.cost", "cores.usable",
                           "limits.memlock", "weft.version", "kernel.release", "nics.rdma"})
    EXPECT_NE(report.find(fact), nullptr) << fact;
}

}  // namespace
}  // namespace weft::checks
