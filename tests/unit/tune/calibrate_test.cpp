// SPDX-License-Identifier: Apache-2.0
#include "tune/calibrate.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/text.h"
#include "reduce/store_choice.h"
#include "tests/unit/plan/sample_machine.h"
#include "tune/machine_file.h"
#include "tune/pair.h"
#include "tune/processor.h"
#include "tune/this_machine.h"

namespace weft::tune {
namespace {

TEST(Calibrate, MeasuresASaneMachine) {
  const Machine machine = estimated(calibrate().machine);
  EXPECT_TRUE(isSane(machine)) << describe(machine);
  EXPECT_EQ(machine.cacheBytes, static_cast<double>(cacheBytes(2)));
  EXPECT_EQ(machine.sharers, static_cast<double>(coresOfLastCache()));
}

// The field is touched once; a later round of the same calibrator measures the same figures.
TEST(Calibrate, EveryRoundOfACalibratorIsWhole) {
  Calibrator calibrator;
  for (int i = 0; i < 3; ++i) {
    const Machine machine = calibrator.round().machine;
    for (const Curve& curve : {machine.load, machine.copy, machine.stream})
      EXPECT_TRUE(std::ranges::any_of(curve.at, [](double rate) { return rate > 0; }));
    EXPECT_EQ(machine.cmaCallNs > 0, estimated(machine).cmaTake.near() > 0);
  }
}

// Calls have made their choice after a few stores. Between cores that share no cache, puts of half a
// mebibyte were measured before that, as fifteen times slower than calls make them.
TEST(Calibrate, PutsStoreAsCallsThatHaveMadeTheirChoice) {
  const Machine machine = calibrate().machine;
  for (std::size_t i = 0; i < kFootprints.size(); ++i) {
    if (machine.put.at[i] == 0) continue;
    EXPECT_GE(machine.put.at[i] * reduce::StorePreference::kMargin, machine.stream.at[i]) << i;
  }
}

// Beside two compilers a hand-over was measured as 0.7 ms, and four ranks chose by that.
TEST(Calibrate, TakesNoTimeSliceForAHandOver) {
  std::atomic<bool> done{false};
  const auto spin = [&] {
    while (!done.load(std::memory_order_relaxed)) {
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) others.emplace_back(spin);
  const double handOver = measurePair().handOver;
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_LT(handOver, PairTimes::kTimeSlice);
}

TEST(Curve, IsALineBetweenFootprintsAndFlatBeyond) {
  const Curve curve = {{10, 5, 4, 2, 1}};
  EXPECT_EQ(curve.nsPerByte(0), 0.1);
  EXPECT_EQ(curve.nsPerByte(kFootprints[0]), 0.1);
  EXPECT_EQ(curve.nsPerByte(kFootprints[1]), 0.2);
  EXPECT_NEAR(curve.nsPerByte(256 << 10), 0.15, 1e-9);
  EXPECT_EQ(curve.nsPerByte(1e15), 1);
}

TEST(Calibrate, LeavesTheCallersThreadWhereItIs) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  (void)calibrate();
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// Threads of this process that block SIGUSR2, and not SIGUSR1; of one that has ended the kernel tells
// no mask.
int openToSignals() {
  constexpr std::uint64_t kOne = 1ull << (SIGUSR1 - 1), kTwo = 1ull << (SIGUSR2 - 1);
  int found = 0;
  std::error_code gone;
  for (std::filesystem::directory_iterator at("/proc/self/task", gone), end; !gone && at != end;
       at.increment(gone)) {
    std::ifstream status(at->path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:"))
        found += (std::stoull(line.substr(7), nullptr, 16) & (kOne | kTwo)) == kTwo;
  }
  return found;
}

// Signals are the application's.
TEST(Calibrate, ItsThreadsTakeNoSignals) {
  std::atomic<bool> over{false};
  std::atomic<int> most{0};
  std::thread watcher([&] {
    while (!over) most = std::max(most.load(), openToSignals());
  });
  sigset_t two, before;
  sigemptyset(&two);
  sigaddset(&two, SIGUSR2);  // which the threads inherit
  pthread_sigmask(SIG_BLOCK, &two, &before);
  for (int i = 0; i < 3; ++i) (void)calibrate();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  over = true;
  watcher.join();
  EXPECT_LE(most, 1) << "this thread alone";
}

// Before this process knows its machine.
TEST(ThisMachine, AnOldFileIsMeasuredAnew) {
  const std::string folder = ::testing::TempDir() + "tune_" + std::to_string(::getpid());
  const std::string file = folder + "/machine";
  KnownMachine known;
  Calibration settled;
  for (int i = 0; i < 2; ++i)
    settled = with(settled, {plan::sampleMachine(), true, true}, std::time(nullptr));
  settled.when -= Calibration::kHoldsSeconds + 1;
  ASSERT_TRUE(saveCalibration(file, machineKey(), settled));
  ASSERT_EQ(setenv("WEFT_TUNE_FILE", file.c_str(), 1), 0);
  ASSERT_TRUE(thisMachine(&known).ok());
  std::filesystem::remove_all(folder);
  EXPECT_EQ(known.origin, Origin::Measured);
  EXPECT_GT(known.calibration.rounds, settled.rounds);
  EXPECT_GT(known.calibration.when, settled.when);
}

// Whatever this machine is busy with: until it is settled each call adds rounds, and then none
// does.
TEST(ThisMachine, IsMeasuredUntilItIsSettledAndThenNoMore) {
  ASSERT_EQ(setenv("WEFT_TUNE_FILE", "off", 1), 0);
  KnownMachine known, next;
  ASSERT_TRUE(thisMachine(&known).ok());
  EXPECT_EQ(known.origin, Origin::Measured);
  while (known.calibration.provisional()) {
    ASSERT_TRUE(thisMachine(&next).ok());
    ASSERT_GT(next.calibration.rounds, known.calibration.rounds);
    known = next;
  }
  KnownMachine told = known;
  told.calibration.kept[0].exchangeNs += 1;
  rememberMachine(told);  // too late: this process knows already
  ASSERT_TRUE(thisMachine(&next).ok());
  EXPECT_EQ(next.calibration, known.calibration);
}

TEST(ThisMachine, WhatCallsContradictIsMeasuredAnewAFewTimes) {
  ASSERT_EQ(setenv("WEFT_TUNE_FILE", "off", 1), 0);
  KnownMachine known, next;
  ASSERT_TRUE(thisMachine(&known).ok());
  for (std::uint32_t i = 1; i <= Calibration::kMostDoubts; ++i) {
    doubt(known);
    doubt(known);  // that one holds no more
    ASSERT_TRUE(thisMachine(&next).ok());
    EXPECT_EQ(next.calibration.doubts, i);
    EXPECT_GT(next.calibration.rounds, 0u);
    while (next.calibration.provisional()) ASSERT_TRUE(thisMachine(&next).ok());
    known = next;
  }
  doubt(known);  // the model is wrong, not the measurement
  ASSERT_TRUE(thisMachine(&next).ok());
  EXPECT_EQ(next.calibration, known.calibration);
}

TEST(ThisMachine, ARecordedOneIsTakenAsItStands) {
  KnownMachine known;
  for (const char* name : {"sapphire_rapids", "zen4", "zen5", "odd"}) {
    const std::string file = text(WEFT_MACHINES, "/", name, ".machine");
    ASSERT_EQ(setenv("WEFT_TUNE_FILE", file.c_str(), 1), 0);
    const Status status = thisMachine(&known);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(known.origin, Origin::Recorded) << file;
    EXPECT_TRUE(isSane(known.calibration.machine())) << file;
    EXPECT_EQ(describe(known), "the recorded machine of WEFT_TUNE_FILE: as it stands");
  }
  EXPECT_EQ(known.calibration.machine().exchangeNs, 50000) << "odd";
  ASSERT_EQ(setenv("WEFT_TUNE_FILE", "off", 1), 0);
  ASSERT_TRUE(thisMachine(&known).ok());
  EXPECT_NE(known.origin, Origin::Recorded) << "it holds no longer than it is named";
}

TEST(Processor, SizesOfCaches) {
  EXPECT_EQ(bytesOfCacheSize("2048K"), 2u << 20);
  EXPECT_EQ(bytesOfCacheSize("32M"), 32u << 20);
  EXPECT_EQ(bytesOfCacheSize("512"), 512u);
  EXPECT_EQ(bytesOfCacheSize(""), 0u);
  EXPECT_EQ(bytesOfCacheSize("K"), 0u);
  EXPECT_EQ(coresOfMask("3"), 2u);
  EXPECT_EQ(coresOfMask("ff,00000003"), 10u);
  EXPECT_EQ(coresOfMask(""), 0u);
  EXPECT_GE(coresOfLastCache(), 1u);
  EXPECT_GT(cacheBytes(2), 0u);
  EXPECT_FALSE(processorName().empty());
}

}  // namespace
}  // namespace weft::tune
