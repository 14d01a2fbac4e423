// SPDX-License-Identifier: Apache-2.0
#include "tune/machine_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "tests/temporary_folder.h"
#include "tests/unit/plan/sample_machine.h"

namespace weft::tune {
namespace {

constexpr const char* kKey = "some processor, weft 1.2.3";

Calibration sample(double exchange = 130.25) {
  Machine machine = plan::sampleMachine();
  machine.exchangeNs = exchange;
  machine.messageNs = 1.0 / 3;
  Calibration calibration{.rounds = 3, .doubts = 2, .complete = true, .when = 1767225600};
  calibration.kept[0] = calibration.kept[2] = machine;
  calibration.kept[1] = plan::sampleMachine();
  return calibration;
}

class MachineFile : public testing::Test {
 protected:
  bool load(Calibration* read) const { return loadCalibration(path_, kKey, read); }
  void write(const std::string& content) const { std::ofstream(path_) << content; }
  std::string content() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  std::size_t files() const {
    using Files = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Files(folder_ / "weft"), Files()));
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "weft/machine";
};

TEST_F(MachineFile, ComesBackBitByBit) {
  Calibration read;
  EXPECT_FALSE(load(&read)) << "there is none yet";
  ASSERT_TRUE(saveCalibration(path_, kKey, sample()));
  ASSERT_TRUE(load(&read));
  EXPECT_EQ(read, sample());
  EXPECT_FALSE(loadCalibration(path_, "another processor", &read));
  ASSERT_TRUE(saveCalibration(path_, kKey, doubted(sample())));
  ASSERT_TRUE(load(&read));
  EXPECT_EQ(read, doubted(sample()));
  EXPECT_EQ(files(), 1u);
}

TEST_F(MachineFile, EveryTruncationAndEveryChangedByteIsNoticed) {
  ASSERT_TRUE(saveCalibration(path_, kKey, sample()));
  const std::string whole = content();
  Calibration read;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    write(whole.substr(0, i));
    EXPECT_FALSE(load(&read)) << "cut to " << i;
    std::string changed = whole;
    changed[i] ^= 1;
    write(changed);
    EXPECT_FALSE(load(&read)) << "byte " << i;
  }
  write(whole + "more");
  EXPECT_FALSE(load(&read));
  write(std::string(1 << 20, 'x'));
  EXPECT_FALSE(load(&read));
  write(whole);
  EXPECT_TRUE(load(&read));
}

TEST_F(MachineFile, WhatOthersMayWriteIsNotTrusted) {
  ASSERT_TRUE(saveCalibration(path_, kKey, sample()));
  Calibration read;
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  EXPECT_FALSE(load(&read));
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  EXPECT_TRUE(load(&read));
  std::filesystem::rename(path_, path_ + ".real");
  std::filesystem::create_symlink(path_ + ".real", path_);
  EXPECT_FALSE(load(&read)) << "a link";
  ASSERT_EQ(chmod((folder_ / "weft").c_str(), 0777), 0);
  EXPECT_FALSE(saveCalibration(path_, kKey, sample()));
}

TEST_F(MachineFile, APlaceThatCannotBeWrittenIsLeftAlone) {
  EXPECT_FALSE(saveCalibration(folder_ / "no/such/folder", kKey, sample()));
  EXPECT_FALSE(saveCalibration("/proc/weft/machine", kKey, sample()));
  EXPECT_FALSE(saveCalibration("/dev/null/machine", kKey, sample()));
  Calibration read;
  EXPECT_FALSE(loadCalibration(folder_.path(), kKey, &read));
}

// A wrong file in WEFT_TUNE_FILE is kept, and so is a recorded machine that could not be opened for
// a moment.
TEST_F(MachineFile, FilesOfOtherKindsAreNotReplaced) {
  ASSERT_TRUE(saveCalibration(path_, kKey, sample()));
  for (const std::string other : {"weft recorded machine 2\n", "my notes\n", "weft"}) {
    std::ofstream(path_) << other;
    EXPECT_FALSE(saveCalibration(path_, kKey, sample(1))) << other;
    std::ostringstream kept;
    kept << std::ifstream(path_).rdbuf();
    EXPECT_EQ(kept.str(), other);
  }
  std::ofstream(path_) << "weft machine 2\nof an older weft";
  EXPECT_TRUE(saveCalibration(path_, kKey, sample(1))) << "an older calibration";
  std::ofstream(path_, std::ios::trunc).flush();
  EXPECT_TRUE(saveCalibration(path_, kKey, sample(1))) << "an empty file";
}

// WEFT_TUNE_FILE=/dev/null must not replace the device.
TEST_F(MachineFile, OnlyPlainFilesAreReplaced) {
  Calibration read;
  ASSERT_TRUE(saveCalibration(path_, kKey, sample()));
  const std::string pipe = folder_ / "weft/pipe", link = folder_ / "weft/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(path_, link);
  EXPECT_FALSE(saveCalibration(pipe, kKey, sample(1)));
  EXPECT_FALSE(saveCalibration(link, kKey, sample(1)));
  EXPECT_FALSE(saveCalibration(folder_ / "weft", kKey, sample(1)));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(loadCalibration(pipe, kKey, &read)) << "without waiting for a writer";
  ASSERT_TRUE(load(&read));
  EXPECT_EQ(read, sample());
}

// Readers see the file of one writer or of another.
TEST_F(MachineFile, WritersDoNotDisturbReaders) {
  ASSERT_TRUE(saveCalibration(path_, kKey, sample(1)));
  constexpr int kWriters = 4, kTimes = 100;
  for (int w = 1; w <= kWriters; ++w) {
    if (fork() != 0) continue;
    bool saved = true;
    for (int i = 0; i < kTimes; ++i) saved = saveCalibration(path_, kKey, sample(w)) && saved;
    _exit(saved ? 0 : 1);
  }
  for (int i = 0; i < kTimes; ++i) {
    Calibration read;
    ASSERT_TRUE(load(&read));
    EXPECT_EQ(read, sample(read.kept[0].exchangeNs));
  }
  for (int w = 0; w < kWriters; ++w) {
    int status = -1;
    ASSERT_GT(wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 1u) << "drafts are gone";
}

TEST_F(MachineFile, LiesInTheUsersCache) {
  setenv("XDG_CACHE_HOME", "/some/cache", 1);
  EXPECT_EQ(machineFilePath().find("/some/cache/weft/machine-"), 0u);
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/some/home", 1);
  EXPECT_EQ(machineFilePath().find("/some/home/.cache/weft/machine-"), 0u);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(machineFilePath(), "");
}

// Comments and blanks are for people; what follows the first line is checked to the last figure.
TEST_F(MachineFile, ARecordedMachineHoldsForEveryMachineOrIsAnError) {
  std::filesystem::create_directory(folder_ / "weft");
  EXPECT_FALSE(isRecorded(path_)) << "there is none yet";
  ASSERT_TRUE(saveCalibration(path_, kKey, sample()));
  EXPECT_FALSE(isRecorded(path_)) << "a calibration of this machine";
  const std::string figures = toText(sample().kept[0]);
  write("weft recorded machine 2\n# seen somewhere\n\n" + figures + "# the end");
  EXPECT_TRUE(isRecorded(path_));
  Machine read;
  ASSERT_TRUE(loadRecorded(path_, &read).ok());
  EXPECT_EQ(read, sample().kept[0]);
  for (const std::string& bad : {std::string(), figures + "cache 4096\n", figures + "colour 1\n",
                                 figures.substr(figures.find('\n') + 1)}) {
    write("weft recorded machine 2\n" + bad);
    ASSERT_TRUE(isRecorded(path_));
    const Status status = loadRecorded(path_, &read);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << bad;
    EXPECT_NE(status.text().find(path_), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("fix: "), std::string::npos) << status.text();
  }
}

// What is measured between NUMA nodes alone: both figures or none, and nothing of it without.
TEST(Machine, FiguresBetweenNumaNodesAreWhereThereAreSeveral) {
  Machine far = sample().kept[0], read;
  EXPECT_EQ(toText(far).find("far_"), std::string::npos);
  EXPECT_EQ(describe(far).find("far_"), std::string::npos);
  EXPECT_EQ(figureNames().find("far_"), std::string::npos);
  far.farPut = flat(3);
  far.farTake = flat(4);
  ASSERT_TRUE(parse(toText(far), &read));
  EXPECT_EQ(read, far);
  EXPECT_NE(describe(far).find("far_take 4 4"), std::string::npos) << describe(far);
  EXPECT_FALSE(parse(toText(sample().kept[0]) + "far_put 3 3 3 3 3\n", &read));
}

TEST(Machine, WordsAreReadBackAndNonsenseIsRefused) {
  Machine read;
  ASSERT_TRUE(parse(toText(sample().kept[0]), &read));
  EXPECT_EQ(read, sample().kept[0]);
  EXPECT_FALSE(parse("", &read));
  EXPECT_FALSE(parse(toText(sample().kept[0]) + "cache 4096\n", &read)) << "twice";
  EXPECT_FALSE(parse(toText(sample().kept[0]) + "colour 1\n", &read));
  EXPECT_FALSE(isSane({}));
  Machine alone = sample().kept[0];
  alone.exchangeNs = 0;
  alone.put = alone.take = {};
  ASSERT_TRUE(parse(toText(alone), &read)) << "a measurement without a second core";
  EXPECT_TRUE(isSane(estimated(read)));
  EXPECT_EQ(estimated(read).exchangeNs, alone.handOverNs);
  EXPECT_EQ(estimated(read).put, alone.copy);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), -1.0, 0.0}) {
    Machine machine = sample().kept[0];
    machine.copy.at[2] = bad;
    EXPECT_FALSE(isSane(machine)) << bad;
  }
  Machine without = sample().kept[0];
  without.cmaCallNs = 0;
  without.cmaPut = without.cmaTake = {};
  EXPECT_TRUE(isSane(without)) << "no CMA copies";
  without.cmaTake.at[4] = 1;
  EXPECT_FALSE(isSane(without));
}

// A busy machine may leave no time for some of the footprints.
TEST(Machine, GapsOfACurveAreClosedFromTheNearestFigure) {
  Machine machine = sample().kept[0];
  machine.put = {{0, 8, 0, 6, 0}};
  EXPECT_EQ(estimated(machine).put, (Curve{{8, 8, 8, 6, 6}}));
}

TEST(Machine, StoresPastTheCachesGainFromWhereTheCurvesCrossForTheLastTime) {
  Machine machine = sample().kept[0];
  const auto footprint = [&](const Curve& stream) {
    machine.put = {{20, 20, 20, 10, 10}};
    machine.stream = stream;
    return streamFootprint(machine);
  };
  EXPECT_EQ(footprint({{9, 9, 9, 9, 9}}), 48u << 20) << "nowhere that was measured";
  EXPECT_EQ(footprint({{30, 9, 9, 9, 9}}), 48u << 20) << "only where nobody needs it";
  EXPECT_EQ(footprint({{30, 30, 30, 30, 30}}), 0u);
  const std::uint64_t crossing = footprint({{9, 9, 9, 9, 12}});
  EXPECT_GT(crossing, 8u << 20);
  EXPECT_LT(crossing, 24u << 20);
  EXPECT_EQ(footprint({{21, 21, 21, 10.5, 10.5}}), 48u << 20) << "as quick, but for noise";
  EXPECT_EQ(footprint({{21, 21, 21, 10.5, 12}}), 8u << 20);
}

}  // namespace
}  // namespace weft::tune
