// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>

#include "sim/network.h"
#include "topology/fabric.h"

namespace weft::sim {

// A fabric as things are some weeks after it was built: up to 32 ranks on up to 4 nodes, joined by a full
// mesh, a torus or cables at random, by rails of unequal rates, and some of that dead or slow.
class RandomFabric {
 public:
  explicit RandomFabric(unsigned seed) : random_(seed) {
    const std::uint32_t nodes = upTo(4), ranks = 1 + upTo(nodes == 1 ? 31 : 7);
    fabric_.name = "random " + std::to_string(seed);
    for (std::uint32_t i = 0; i < nodes; ++i)
      fabric_.nodes.push_back({"n" + std::to_string(i), ranks});
    addMesh(ranks);
    if (nodes > 1) addRails(ranks);
    breakSome();
  }

  // Some ranks may be cut off.
  Network network() const {
    Network made;
    const Status status = Network::make(fabric_, changes_, 0, &made);
    EXPECT_TRUE(status.ok()) << status.text();
    return made;
  }

 private:
  std::uint32_t upTo(std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(1, most)(random_);
  }
  double gbit() {
    constexpr double kRates[] = {25, 50, 100, 200};
    return kRates[upTo(std::size(kRates)) - 1];
  }

  void join(std::uint32_t a, std::uint32_t b, topology::LinkSpeed speed) {
    if (a > b) std::swap(a, b);
    const bool isJoined = std::ranges::any_of(
        fabric_.mesh, [&](const topology::MeshLink& l) { return l.a == a && l.b == b; });
    if (a != b && !isJoined) fabric_.mesh.push_back({a, b, speed});
  }

  void addMesh(std::uint32_t ranks) {
    const topology::LinkSpeed cable{gbit(), 3};
    const std::uint32_t kind = upTo(3);
    std::uint32_t width = std::max(1u, ranks / 4);
    while (ranks % width != 0) --width;
    for (std::uint32_t a = 0; a < ranks; ++a) {
      if (kind == 1 && ranks <= 12)
        for (std::uint32_t b = a + 1; b < ranks; ++b) join(a, b, cable);
      if (kind == 2) join(a, a / width * width + (a + 1) % width, cable);
      if (kind == 2) join(a, (a + width) % ranks, cable);
      if (kind == 3 || (kind == 1 && ranks > 12)) {
        if (a > 0) join(a, upTo(a) - 1, cable);
        for (std::uint32_t k = 0; k < 2; ++k) join(a, upTo(ranks) - 1, {gbit(), 3});
      }
    }
  }

  // Of one, two or four ranks each, some of them two side by side.
  void addRails(std::uint32_t ranks) {
    const std::uint32_t share = 1u << (upTo(3) - 1);
    const topology::LinkSpeed nic{gbit(), 20};
    const bool differ = upTo(3) == 1;
    for (std::uint32_t first = 0; first < ranks; first += share) {
      topology::Rail rail{
          "r" + std::to_string(first), differ ? topology::LinkSpeed{gbit(), 20} : nic, {}};
      for (std::uint32_t r = first; r < std::min(first + share, ranks); ++r)
        rail.ranks.push_back(r);
      fabric_.rails.push_back(rail);
      if (upTo(4) > 1) continue;
      rail.name += "b";
      fabric_.rails.push_back(rail);
    }
  }

  void breakSome() {
    const auto nodes = static_cast<std::uint32_t>(fabric_.nodes.size());
    for (std::uint32_t k = upTo(4); k-- > 0 && !fabric_.mesh.empty();) {
      const topology::MeshLink& link = fabric_.mesh[random_() % fabric_.mesh.size()];
      changes_.push_back({upTo(nodes) - 1, std::to_string(link.a) + "-" + std::to_string(link.b),
                          upTo(3) == 1 ? 0.5 : 0});
    }
    if (fabric_.rails.size() > 1 && upTo(2) == 1)
      changes_.push_back({upTo(nodes) - 1, fabric_.rails[random_() % fabric_.rails.size()].name,
                          upTo(2) == 1 ? 0.5 : 0});
  }

  std::mt19937 random_;
  topology::Fabric fabric_;
  std::vector<Change> changes_;
};

}  // namespace weft::sim
