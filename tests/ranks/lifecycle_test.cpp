// SPDX-License-Identifier: Apache-2.0
// Communicators come and go without a trace.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "world.h"

namespace weft::testing {
namespace {

std::size_t entriesOf(const char* folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}
long residentKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::stol(line.substr(6));
  return 0;
}
void cycles(int times) {
  for (int i = 0; i < times; ++i) {
    weftComm_t comms[2];
    ASSERT_EQ(weftCommInitAll(comms, 2, nullptr), weftSuccess) << weftGetLastError(nullptr);
    for (const weftComm_t comm : comms) ASSERT_EQ(weftCommDestroy(comm), weftSuccess);
  }
}

// WEFT_TEST_CYCLES=10000 runs the promised number, which takes minutes on a busy machine.
int cyclesToRun() {
  const char* wanted = std::getenv("WEFT_TEST_CYCLES");
  return wanted ? std::atoi(wanted) : 1000 / kSlowdown;
}

TEST(Lifecycle, CyclesLeaveMemoryDescriptorsAndThreadsWhereTheyWere) {
  cycles(200);
  const long before = residentKiB();
  const std::size_t fds = entriesOf("/proc/self/fd"), threads = entriesOf("/proc/self/task");
  cycles(cyclesToRun());
  EXPECT_EQ(entriesOf("/proc/self/fd"), fds);
  EXPECT_EQ(entriesOf("/proc/self/task"), threads);
  const long mostKiB = kSanitized ? 64 << 10 : 1024;  // sanitizers keep freed memory for a while
  EXPECT_LT(residentKiB() - before, mostKiB);
}

TEST(Lifecycle, ForkedChildIsToldAndTheParentIsNotHarmed) {
  weftComm_t comm = nullptr;
  ASSERT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess);
  const std::vector<std::string> texts = forkRanks(1, [&](int) -> std::string {
    if (weftBarrier(comm, nullptr, nullptr) != weftInvalidUsage) return "the child may use it";
    weftComm_t own = nullptr;
    if (weftCommInitAll(&own, 1, nullptr) != weftSuccess) return weftGetLastError(nullptr);
    return outcome(weftBarrier(own, nullptr, nullptr), own);
  });
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(weftBarrier(comm, nullptr, nullptr), weftSuccess);
  weftCommDestroy(comm);
}

}  // namespace
}  // namespace weft::testing
