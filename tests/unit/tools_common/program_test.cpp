// SPDX-License-Identifier: Apache-2.0
#include "perf/common/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "perf/common/exit_code.h"
#include "perf/common/report_file.h"
#include "tests/temporary_folder.h"

namespace weft::tools {
namespace {

int runTest(const std::function<int()>& work) { return runProgram("test", work); }

TEST(Program, EndsAsItsWorkDoes) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(runTest([] { return 0; }), 0);
  EXPECT_EQ(runTest([] { return 69; }), 69);
  EXPECT_EQ(runTest([]() -> int { throw CannotWrite("no"); }), kExitCannotWrite);
  EXPECT_EQ(runTest([]() -> int { throw std::runtime_error("why"); }), kExitInternal);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "test: no\ntest: why\n");
}

// In a process whose standard output is that file.
void expectLoss(const std::string& path, const std::function<int()>& work) {
  EXPECT_EXIT(
      {
        if (std::freopen(path.c_str(), "w", stdout) == nullptr) std::_Exit(1);
        std::_Exit(runTest(work));
      },
      testing::ExitedWithCode(kExitCannotWrite), "test: cannot write standard output");
}

TEST(Program, WhatItPrintsArrivesOrIsMissed) {
  const test::TemporaryFolder folder;
  const std::string full = folder / "full";
  const bool made =
      ::mknod(full.c_str(), S_IFCHR | 0666, ::makedev(1, 7)) == 0 && std::ofstream(full).is_open();
  if (made) {
    expectLoss(full, [] { return std::puts("lost") >= 0 ? 0 : 1; });
    expectLoss(full, []() -> int {
      std::puts("lost");
      throw std::runtime_error("as of fmt::print");
    });
  }
  if (!made) GTEST_SKIP() << "only root makes devices";
}

TEST(Program, KnowsItsVersion) {
  EXPECT_EQ(versionOf("test"), "test " + std::to_string(WEFT_MAJOR) + "." +
                                   std::to_string(WEFT_MINOR) + "." + std::to_string(WEFT_PATCH));
}

}  // namespace
}  // namespace weft::tools
