// SPDX-License-Identifier: Apache-2.0
// Staging memory of messages: ranks that never exchange any have none.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "courier.h"

namespace weft::transport {
namespace {

class Staging : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Staging, testing::ValuesIn(forkedFabrics()),
                         [](const auto& of) { return of.param.name; });

constexpr std::size_t kPage = 4096, kOfPeer = 16 * kPage;

std::vector<unsigned char> residentPages(const Transport& transport) {
  const WindowLayout& layout = transport.layout();
  std::vector<unsigned char> pages(layout.pairBytes / kPage);
  REQUIRE(::mincore(transport.own().pairArena(), layout.pairBytes, pages.data()) == 0);
  for (unsigned char& page : pages) page &= 1;
  return pages;
}

TEST_P(Staging, PagesComeWithTheFirstUse) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    WindowLayout layout = smallLayout(3);
    layout.pairBytes = 3 * kOfPeer;
    const auto transport = rank.make(layout);
    std::vector<unsigned char> wanted(layout.pairBytes / kPage, 0);
    REQUIRE(residentPages(*transport) == wanted);
    rank.barrier();
    const std::vector<std::byte> source(kOfPeer, std::byte{5});
    const Put put{.peer = 1,
                  .arrival = layout.pairArrivals(),
                  .flag = 1,
                  .src = source.data(),
                  .bytes = kOfPeer,
                  .target = layout.pairArena() + kOfPeer};
    if (rank.rank == 0) {
      const Status got = transport->commit(1, layout.pairArena() + kOfPeer, kOfPeer);
      REQUIRE(got.ok(), got.text());
      Courier courier(*transport);
      courier.send(put);
      courier.drain();
    }
    rank.barrier();
    if (rank.rank == 1) std::fill_n(wanted.begin() + kOfPeer / kPage, kOfPeer / kPage, 1);
    REQUIRE(residentPages(*transport) == wanted, "rank ", rank.rank);
    rank.barrier();
  });
}

}  // namespace
}  // namespace weft::transport
