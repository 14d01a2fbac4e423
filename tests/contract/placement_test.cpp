// SPDX-License-Identifier: Apache-2.0
// A rank's window lies on the NUMA node that it names, though its peers touch most of it first.
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "courier.h"

namespace weft::transport {
namespace {

class Placement : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Placement, testing::ValuesIn(bareFabrics()),
                         [](const auto& of) { return of.param.name; });

int nodesHere() {
  int nodes = 0;
  while (std::filesystem::exists(text("/sys/devices/system/node/node", nodes))) ++nodes;
  return std::max(nodes, 1);
}

// The preferred node of what lies there; -1: none.
int preferredAt(const std::byte* at) {
  int policy = MPOL_DEFAULT;
  unsigned long nodes[16] = {};
  REQUIRE(::syscall(SYS_get_mempolicy, &policy, nodes, 1024UL, at, MPOL_F_ADDR) == 0);
  return policy == MPOL_PREFERRED ? __builtin_ctzl(nodes[0]) : -1;
}

// Pages of a range by their node, without those that have no memory.
void requirePagesOn(int node, const std::byte* base, std::size_t bytes, std::size_t atLeast) {
  std::size_t pages = 0;
  for (std::size_t at = 0; at < bytes; at += kPage) {
    const void* page = base + at;
    int where = -1;
    REQUIRE(::syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &where, 0) == 0);
    if (where < 0) continue;
    REQUIRE(where == node, "page ", at / kPage, " is on node ", where, ", not on ", node);
    ++pages;
  }
  REQUIRE(pages >= atLeast, pages, " pages");
}

// Each rank gives pages to the other's arenas, then to its own, and asks where these have come to lie.
void requirePlacedBy(Rank& rank, Transport& transport, int node) {
  const WindowLayout& layout = transport.layout();
  const std::size_t bytes = kMaxLanes * layout.arenaBytes;
  REQUIRE(transport.commit(1 - rank.rank, layout.arena(), bytes).ok());
  rank.barrier();
  REQUIRE(transport.commit(rank.rank, layout.arena(), bytes).ok());
  const std::byte* const own = transport.own().base();
  REQUIRE(preferredAt(own + layout.arena()) == node);
  REQUIRE(preferredAt(own) == node);
  REQUIRE(preferredAt(reinterpret_cast<const std::byte*>(transport.control(rank.rank))) == node);
  if (node >= 0) requirePagesOn(node, own, layout.size(), bytes / kPage);
  rank.barrier();
}

TEST_P(Placement, OfAWindowIsItsOwners) {
  const int nodes = nodesHere();
  int policy = 0;
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, nullptr, 0UL) != 0)
    GTEST_SKIP() << "this kernel, or its seccomp filter, knows no memory policies";
  runAllWell(GetParam(), 2, [nodes](Rank& rank) {
    for (const bool placed : {true, false}) {
      TransportSetup setup = rank.setup(smallLayout(2));
      setup.node = placed ? static_cast<int>(1 - rank.rank) % nodes : -1;
      std::unique_ptr<Transport> transport, branch;
      REQUIRE(rank.tryMake(setup, &transport).ok());
      requirePlacedBy(rank, *transport, setup.node);
      const std::uint32_t both[] = {0, 1};
      REQUIRE(transport->branch(setup, both, &branch).ok());
      REQUIRE(branch != nullptr);
      requirePlacedBy(rank, *branch, setup.node);
      rank.barrier();
    }
  });
}

}  // namespace
}  // namespace weft::transport
