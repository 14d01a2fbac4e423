// SPDX-License-Identifier: Apache-2.0
#include "tune/calibrate.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "tune/processor.h"
#include "tune/this_machine.h"

namespace weft {
namespace {

TEST(Calibrate, MeasuresASaneMachine) {
  const Machine machine = calibrate().machine;
  EXPECT_TRUE(isSane(machine)) << describe(machine);
  EXPECT_LE(machine.putAcross, machine.copyNear);
  EXPECT_LE(machine.takeAcross, machine.copyNear);
  EXPECT_EQ(machine.cacheBytes, static_cast<double>(cacheBytes(2)));
}

TEST(Calibrate, LeavesTheCallersThreadWhereItIs) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  (void)calibrate();
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Calibrate, OnceAProcess) {
  ASSERT_EQ(setenv("WEFT_TUNE_FILE", "off", 1), 0);
  KnownMachine first, second;
  ASSERT_TRUE(thisMachine(&first).ok());
  EXPECT_EQ(first.origin, Origin::Measured);
  Machine told = first.machine;
  told.exchangeNs += 1;
  rememberMachine(told);  // too late: this process knows already
  ASSERT_TRUE(thisMachine(&second).ok());
  EXPECT_EQ(first.machine, second.machine);
}

TEST(Processor, SizesOfCaches) {
  EXPECT_EQ(bytesOfCacheSize("2048K"), 2u << 20);
  EXPECT_EQ(bytesOfCacheSize("32M"), 32u << 20);
  EXPECT_EQ(bytesOfCacheSize("512"), 512u);
  EXPECT_EQ(bytesOfCacheSize(""), 0u);
  EXPECT_EQ(bytesOfCacheSize("K"), 0u);
  EXPECT_GT(cacheBytes(2), 0u);
  EXPECT_FALSE(processorName().empty());
}

}  // namespace
}  // namespace weft
