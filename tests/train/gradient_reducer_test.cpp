// SPDX-License-Identifier: Apache-2.0
#include "tools/train/gradient_reducer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace weft::train {
namespace {

const std::vector<size_t> kSizes{300, 1, 70, 5000, 64};

// Runs `body` as each of `ranks` ranks, one thread each.
void asRanks(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Communicator> team = Communicator::all(ranks);
  std::vector<std::thread> threads;
  for (Communicator& comm : team) threads.emplace_back([&] { body(comm); });
  for (std::thread& thread : threads) thread.join();
}

float value(int rank, size_t parameter, size_t i) {
  return std::sin(static_cast<float>(i + 100 * parameter)) * static_cast<float>(rank + 1);
}

void fill(const FlatLayout& layout, size_t parameter, int rank, std::vector<float>& gradients) {
  const auto& [offset, size, bucket] = layout.slot(parameter);
  for (size_t i = 0; i < size; ++i) gradients[offset + i] = value(rank, parameter, i);
}

// One step on `ranks` ranks; the averages must be off by at most `tolerance` of the largest term.
void checkAverages(int ranks, Wire wire, bool overlap, float tolerance) {
  asRanks(ranks, [&](Communicator& comm) {
    const FlatLayout layout(kSizes, 256);
    std::vector<float> gradients(layout.size());
    Stream stream;
    GradientReducer reducer(comm, stream, layout, gradients, wire, overlap);
    for (int step = 0; step < 3; ++step) {
      std::fill(gradients.begin(), gradients.end(), 0.0f);
      reducer.ready(0);  // outside of a step: ignored
      reducer.begin();
      for (size_t k = 0; k < kSizes.size(); ++k) {  // each rank in its own order
        const size_t parameter = (k + static_cast<size_t>(comm.rank())) % kSizes.size();
        fill(layout, parameter, comm.rank(), gradients);
        reducer.ready(parameter);
      }
      reducer.finish();
      const float meanFactor = static_cast<float>(ranks + 1) / 2;
      for (size_t parameter = 0; parameter < kSizes.size(); ++parameter) {
        for (size_t i = 0; i < kSizes[parameter]; ++i) {
          ASSERT_NEAR(gradients[layout.slot(parameter).offset + i],
                      value(0, parameter, i) * meanFactor, tolerance * static_cast<float>(ranks));
        }
      }
    }
  });
}

TEST(GradientReducer, AveragesOverRanks) {
  for (const int ranks : {1, 2, 3}) {
    for (const bool overlap : {true, false}) checkAverages(ranks, Wire::kFloat32, overlap, 1e-6f);
  }
}

TEST(GradientReducer, ABfloat16WireRoundsTwice) {
  for (const bool overlap : {true, false}) checkAverages(2, Wire::kBfloat16, overlap, 0x1p-7f);
}

TEST(GradientReducer, ABfloat16WireRoundsToNearestEvenAndKeepsWhatIsNotFinite) {
  asRanks(1, [](Communicator& comm) {
    const std::vector<size_t> sizes{6};
    const FlatLayout layout(sizes, 1);
    std::vector<float> gradients(layout.size());
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> in{1.0f,      0x1.01p0f,       0x1.03p0f,
                                -infinity, 0x1.fffffep127f, std::nanf("")};
    std::copy(in.begin(), in.end(), gradients.begin());
    Stream stream;
    GradientReducer reducer(comm, stream, layout, gradients, Wire::kBfloat16, true);
    reducer.begin();
    reducer.ready(0);
    reducer.finish();
    EXPECT_EQ(gradients[0], 1.0f);
    EXPECT_EQ(gradients[1], 1.0f);       // half way, to even
    EXPECT_EQ(gradients[2], 0x1.04p0f);  // half way, to even
    EXPECT_EQ(gradients[3], -infinity);
    EXPECT_EQ(gradients[4], infinity);
    EXPECT_TRUE(std::isnan(gradients[5]));
  });
}

TEST(GradientReducer, AMissingGradientIsNoticed) {
  asRanks(1, [](Communicator& comm) {
    const FlatLayout layout(kSizes, 256);
    std::vector<float> gradients(layout.size());
    Stream stream;
    GradientReducer reducer(comm, stream, layout, gradients, Wire::kFloat32, true);
    reducer.begin();
    reducer.ready(1);
    EXPECT_THROW(reducer.finish(), std::logic_error);
  });
}

}  // namespace
}  // namespace weft::train
