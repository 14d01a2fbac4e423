// SPDX-License-Identifier: Apache-2.0
#include "perf/common/exit_code.h"

#include <gtest/gtest.h>

namespace weft::tools {
namespace {

TEST(ExitCode, TellsABatchSystemWhatToDo) {
  EXPECT_EQ(exitCodeOf(weftSuccess), 0);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument), 64);
  EXPECT_EQ(exitCodeOf(weftMismatch), 65);
  EXPECT_EQ(exitCodeOf(weftInternalError), 70);
  EXPECT_EQ(exitCodeOf(weftRemoteError), 75);
  EXPECT_EQ(exitCodeOf(weftTimeout), 75);
  EXPECT_EQ(exitCodeOf(weftAuthentication), 77);
  EXPECT_EQ(exitCodeOf(weftSystemError), 78);
}

}  // namespace
}  // namespace weft::tools
