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
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "WEFT_LANES=x is not a number"), 78);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "OMPI_COMM_WORLD_RANK=-1 is not a number"), 78);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "RANK=x is not a number"), 78);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "WEFT_ROCE_GID is 'x'; fix: auto"), 78);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "rank 0: WEFT_OFI_MODE=x is not one of"), 78);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "rank 0: root is 7"), 64);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "rank 0"), 64);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "root is 7"), 64);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "WEFT_LANES"), 64);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, "=WEFT"), 64);
  EXPECT_EQ(exitCodeOf(weftInvalidArgument, ""), 64);
  EXPECT_EQ(exitCodeOf(weftMismatch, "WEFT_LANES=2 on rank 0, 3 on rank 1"), 65);
}

}  // namespace
}  // namespace weft::tools
