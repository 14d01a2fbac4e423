// SPDX-License-Identifier: Apache-2.0
#include "shard/step_progress.h"

#include <gtest/gtest.h>

namespace weft::test {
using namespace shard;
namespace {

TEST(StepProgress, AnUpdateThatDoesNotEndIsNamedAtTheDeadline) {
  StepProgress progress(3);
  EXPECT_TRUE(progress.awaitUpdate(2, 0).ok()) << "no step is at work";
  progress.begin();
  progress.markUpdated(0);
  EXPECT_TRUE(progress.awaitUpdate(0, 0).ok());
  const Status late = progress.awaitUpdate(2, 10);
  EXPECT_EQ(late.code(), Code::Timeout);
  EXPECT_NE(late.text().find("the update of bucket 2 did not end within 20 ms; fix: weftStepWait"),
            std::string::npos)
      << late.text();
  progress.end();
  EXPECT_TRUE(progress.awaitUpdate(2, 0).ok());
}

}  // namespace
}  // namespace weft::test
