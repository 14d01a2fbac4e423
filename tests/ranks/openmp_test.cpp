// SPDX-License-Identifier: Apache-2.0
// Calls from within OpenMP regions, by the threads that have just made their part of the input and
// go on with their part of the result.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdlib>

#include "region.h"

namespace weft::testing {
namespace {

[[maybe_unused]] const int slowly = ::setenv("WEFT_TUNE_FILE", WEFT_SLOW_COPIES, 1);

constexpr int kTeam = 3, kSteps = 20, kCount = 200003;

std::string steps(const Rank& r) {
  std::vector<float> x(kCount), sum(kCount);
  std::string failed;
  int wrong = 0;
#pragma omp parallel num_threads(kTeam) reduction(+ : wrong)
  for (int step = 0; step < kSteps; ++step) {
#pragma omp for schedule(static)
    for (std::size_t i = 0; i < kCount; ++i) x[i] = static_cast<float>(r.rank + step);
    const std::string ended = outcome(
        weftAllReduce(x.data(), sum.data(), kCount, weftFloat, weftSum, r.comm, nullptr, nullptr),
        r.comm);
    const auto expected = static_cast<float>(r.ranks * step + r.ranks * (r.ranks - 1) / 2);
#pragma omp for schedule(static)
    for (std::size_t i = 0; i < kCount; ++i) wrong += sum[i] != expected;
#pragma omp critical
    if (!ended.empty()) failed = ended;
  }
  return wrong != 0 ? std::to_string(wrong) + " wrong sums" : failed;
}

class OpenMp : public ::testing::TestWithParam<Kind> {};

TEST_P(OpenMp, RegionsMakeCallsTogether) {
  EXPECT_EQ(failures({GetParam(), 2}, [](const Rank& r) { return withTeamCalls(r, kTeam, steps); }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Worlds, OpenMp, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& p) { return nameOf(p.param); });

}  // namespace
}  // namespace weft::testing
