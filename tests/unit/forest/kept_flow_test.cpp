// SPDX-License-Identifier: Apache-2.0
#include "forest/kept_flow.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::forest {
namespace {

// A random graph whose capacities change a little between questions, and a copy that keeps nothing.
class KeptFlowTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::uint32_t kSource = 0, kVertices = 14;

  KeptFlowTest() : random_(GetParam()), kept_(kVertices), plain_(kVertices), flows_(kVertices) {
    for (int i = 0; i < 70; ++i) addEdge(anyOf(kVertices), anyOf(kVertices));
  }
  std::uint32_t anyOf(std::uint32_t n) { return std::uniform_int_distribution(0u, n - 1)(random_); }
  std::uint32_t anySink() { return 1 + anyOf(kVertices - 1); }

  void addEdge(std::uint32_t from, std::uint32_t to) {
    if (from == to || to == kSource) return;
    const auto capacity = static_cast<Units>(anyOf(6));
    edges_.push_back(kept_.addEdge(from, to, capacity));
    ASSERT_EQ(plain_.addEdge(from, to, capacity), edges_.back());
  }
  void change() {
    const std::uint32_t edge = edges_[anyOf(static_cast<std::uint32_t>(edges_.size()))];
    const auto capacity = static_cast<Units>(anyOf(6));
    kept_.setCapacity(edge, capacity);
    plain_.setCapacity(edge, capacity);
  }

  std::mt19937 random_;
  KeptFlow kept_;
  MaxFlow<Units> plain_;
  std::vector<KeptFlow::Kept> flows_;
  std::vector<std::uint32_t> edges_;
};

TEST_P(KeptFlowTest, IsWhatAFlowFromTheBeginningIs) {
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t sink = anySink();
    ASSERT_EQ(kept_.runFrom(&flows_[sink], kSource, sink, KeptFlow::kUnlimited),
              plain_.run(kSource, sink))
        << i;
    for (std::uint32_t n = anyOf(8); n > 0; --n) change();
    if (i % 50 == 0) addEdge(anyOf(kVertices), anyOf(kVertices));
  }
}

TEST_P(KeptFlowTest, FindsNoMoreThanIsEnough) {
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t sink = anySink();
    const Units all = plain_.run(kSource, sink), enough = all / 2;
    ASSERT_EQ(kept_.runFrom(&flows_[sink], kSource, sink, enough), enough);
    ASSERT_EQ(kept_.runFrom(&flows_[sink], kSource, sink, KeptFlow::kUnlimited), all);
    change();
  }
}

// As it asks of a tree's next edge.
TEST_P(KeptFlowTest, FindsHowManyMoreAnOpenEdgeBrings) {
  std::vector<std::uint32_t> starts(kVertices);
  for (std::uint32_t v = 1; v < kVertices; ++v) {
    starts[v] = kept_.addEdge(kSource, v, 0);
    ASSERT_EQ(plain_.addEdge(kSource, v, 0), starts[v]);
  }
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t sink = anySink(), from = anySink();
    const auto most = static_cast<Units>(anyOf(5));
    const KeptFlow::Found found =
        kept_.runFrom(&flows_[sink], kSource, sink, KeptFlow::kUnlimited, starts[from], most);
    const Units flow = plain_.run(kSource, sink);
    plain_.setCapacity(starts[from], MaxFlow<Units>::kUnlimited);
    ASSERT_EQ(found.flow, flow);
    ASSERT_EQ(found.flow + found.more, plain_.run(kSource, sink, flow + most));
    plain_.setCapacity(starts[from], 0);
    for (std::uint32_t n = anyOf(8); n > 0; --n) change();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, KeptFlowTest, ::testing::Range(1u, 21u));

}  // namespace
}  // namespace weft::forest
