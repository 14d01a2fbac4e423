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

TEST(ExitCode, OfAVariableThatIsRefusedIsTheMachines) {
  EXPECT_EQ(exitCodeOf(Error(weftInvalidArgument, "WEFT_LANES=x is not a number",
                             {.variable = "WEFT_LANES"})),
            78);
  EXPECT_EQ(exitCodeOf(Error(weftInvalidArgument, "WEFT_LANES is what I call this rank")), 64);
  EXPECT_EQ(exitCodeOf(Error(weftMismatch, "WEFT_LANES=2 on rank 0, 3 on rank 1")), 65);
}

}  // namespace
}  // namespace weft::tools
