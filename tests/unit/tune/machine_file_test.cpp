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

#include "tests/unit/plan/sample_machine.h"

namespace weft {
namespace {

constexpr const char* kKey = "some processor, weft 1.2.3";

Machine sample(double exchange = 130.25) {
  Machine machine = sampleMachine();
  machine.exchangeNs = exchange;
  machine.messageNs = 1.0 / 3;
  return machine;
}

class MachineFile : public testing::Test {
 protected:
  MachineFile() {
    char name[] = "/tmp/weft-tune-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/weft/machine";
  }
  ~MachineFile() override { std::filesystem::remove_all(folder_); }

  bool load(Machine* machine) const { return loadMachine(path_, kKey, machine); }
  void write(const std::string& content) const { std::ofstream(path_) << content; }
  std::string content() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  std::size_t files() const {
    using Files = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Files(folder_ + "/weft"), Files()));
  }

  std::string folder_, path_;
};

TEST_F(MachineFile, ComesBackBitByBit) {
  Machine read;
  EXPECT_FALSE(load(&read)) << "there is none yet";
  ASSERT_TRUE(saveMachine(path_, kKey, sample()));
  ASSERT_TRUE(load(&read));
  EXPECT_EQ(read, sample());
  EXPECT_FALSE(loadMachine(path_, "another processor", &read));
  EXPECT_EQ(files(), 1u);
}

TEST_F(MachineFile, EveryTruncationAndEveryChangedByteIsNoticed) {
  ASSERT_TRUE(saveMachine(path_, kKey, sample()));
  const std::string whole = content();
  Machine read;
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
  ASSERT_TRUE(saveMachine(path_, kKey, sample()));
  Machine read;
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  EXPECT_FALSE(load(&read));
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  EXPECT_TRUE(load(&read));
  std::filesystem::rename(path_, path_ + ".real");
  std::filesystem::create_symlink(path_ + ".real", path_);
  EXPECT_FALSE(load(&read)) << "a link";
  ASSERT_EQ(chmod((folder_ + "/weft").c_str(), 0777), 0);
  EXPECT_FALSE(saveMachine(path_, kKey, sample()));
}

TEST_F(MachineFile, APlaceThatCannotBeWrittenIsLeftAlone) {
  EXPECT_FALSE(saveMachine(folder_ + "/no/such/folder", kKey, sample()));
  EXPECT_FALSE(saveMachine("/proc/weft/machine", kKey, sample()));
  EXPECT_FALSE(saveMachine("/dev/null/machine", kKey, sample()));
  Machine read;
  EXPECT_FALSE(loadMachine(folder_, kKey, &read));
}

// WEFT_TUNE_FILE=/dev/null must not replace the device.
TEST_F(MachineFile, OnlyPlainFilesAreReplaced) {
  Machine read;
  ASSERT_TRUE(saveMachine(path_, kKey, sample()));
  const std::string pipe = folder_ + "/weft/pipe", link = folder_ + "/weft/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(path_, link);
  EXPECT_FALSE(saveMachine(pipe, kKey, sample(1)));
  EXPECT_FALSE(saveMachine(link, kKey, sample(1)));
  EXPECT_FALSE(saveMachine(folder_ + "/weft", kKey, sample(1)));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(loadMachine(pipe, kKey, &read)) << "without waiting for a writer";
  ASSERT_TRUE(load(&read));
  EXPECT_EQ(read, sample());
}

// Readers see the file of one writer or of another.
TEST_F(MachineFile, WritersDoNotDisturbReaders) {
  ASSERT_TRUE(saveMachine(path_, kKey, sample(1)));
  constexpr int kWriters = 4, kTimes = 100;
  for (int w = 1; w <= kWriters; ++w) {
    if (fork() != 0) continue;
    bool saved = true;
    for (int i = 0; i < kTimes; ++i) saved = saveMachine(path_, kKey, sample(w)) && saved;
    _exit(saved ? 0 : 1);
  }
  for (int i = 0; i < kTimes; ++i) {
    Machine read;
    ASSERT_TRUE(load(&read));
    EXPECT_EQ(read, sample(read.exchangeNs));
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

TEST(Machine, WordsAreReadBackAndNonsenseIsRefused) {
  Machine read;
  ASSERT_TRUE(parse(toText(sample()), &read));
  EXPECT_EQ(read, sample());
  EXPECT_FALSE(parse("", &read));
  EXPECT_FALSE(parse(toText(sample()) + "cache 4096\n", &read)) << "twice";
  EXPECT_FALSE(parse(toText(sample()) + "colour 1\n", &read));
  EXPECT_FALSE(isSane({}));
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), -1.0, 0.0}) {
    Machine machine = sample();
    machine.copyNear = bad;
    EXPECT_FALSE(isSane(machine)) << bad;
  }
  Machine without = sample();
  without.kernelCallNs = without.kernelNear = without.kernelFar = 0;
  EXPECT_TRUE(isSane(without)) << "no kernel copies";
  without.kernelFar = 1;
  EXPECT_FALSE(isSane(without));
}

}  // namespace
}  // namespace weft
