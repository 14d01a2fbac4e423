// SPDX-License-Identifier: Apache-2.0
// A fixture that runs its tests once for each instruction set that is compiled in and that this CPU
// has.
#pragma once

#include "reduce/targets.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <string>

namespace weft::reduce {

class TargetTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(GetParam());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

#define WEFT_FOR_EACH_TARGET(fixture)                                    \
  INSTANTIATE_TEST_SUITE_P(                                              \
      , fixture, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), \
      [](const auto& test) { return std::string(hwy::TargetName(test.param)); })

}  // namespace weft::reduce
