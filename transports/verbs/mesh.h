// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/verbs/port.h"

// Which port reaches which peer: pure functions of what all ranks know. Each rank finds its own edges
// alone, in time that grows with the ports of all and not with the pairs; both ends of an edge find
// it alike, and the edges of a pair in the same order.
namespace weft::verbs {

struct Fabric {
  std::vector<std::vector<PortInfo>> ports;  // by rank
  std::vector<PeerName> names;               // by rank
  std::vector<std::string> hosts;            // by rank
  std::vector<std::vector<bool>> wanted;     // by rank and peer: they are to reach each other

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(ports.size()); }
  bool wants(std::uint32_t a, std::uint32_t b) const { return wanted[a][b] || wanted[b][a]; }
  // "rc0p1:1 of rank 0 (host a, pid 7)"
  std::string nameOf(std::uint32_t rank, std::uint32_t port) const;
};

// One way between ports of two ranks, rank[0] < rank[1]. Several of one pair are its rails.
struct Edge {
  std::array<std::uint32_t, 2> rank{};
  std::array<std::uint32_t, 2> port{};
  bool linkLocal = false;  // by the ports' link-local GIDs

  bool operator==(const Edge&) const = default;
  // Which of the two ends is that rank's; it has one.
  std::size_t sideOf(std::uint32_t one) const { return rank[0] == one ? 0 : 1; }
  std::uint32_t peerOf(std::uint32_t one) const { return rank[1 - sideOf(one)]; }
};
using Wiring = std::vector<Edge>;  // of one rank; sorted by its peers, then by ports

// What the rank heard: a hello of `rank`'s `port` on its own port `at`.
struct Heard {
  std::uint32_t at = 0;
  std::uint32_t rank = 0;
  std::uint32_t port = 0;
  auto operator<=>(const Heard&) const = default;
};
using AllHeard = std::vector<std::vector<Heard>>;  // by rank; see tidy()

// One line of WEFT_MESH_FILE.
struct Cable {
  struct End {
    std::string where;  // a rank's number, a host's name, or empty: any
    std::string device;
    std::uint32_t port = 1;
  };
  std::array<End, 2> end;
  int line = 0;
};

// The edges of `rank`. Joins the ports of each pair that are in one subnet. Two ports of a rank in
// one subnet are an error, as nobody can tell which of them is cabled to whom; unless all ports of
// all ranks are in one subnet: then that is a switch, and the k-th port of a rank reaches the k-th of
// each other. Errors are the same on all ranks.
Status wireBySubnet(const Fabric& fabric, std::uint32_t rank, Wiring* out);
// What the cables say. A cable with an end that no rank has is for others.
Status wireByCables(const Fabric& fabric, std::uint32_t rank, const std::vector<Cable>& cables,
                    Wiring* out);
// Sorts what was heard, as the functions below expect it; what names no port goes.
void tidy(const Fabric& fabric, AllHeard* heard);
// Whether a port on a network heard nobody: where an edge is missing, it may have had too little time.
bool isAnySilent(const Fabric& fabric, const AllHeard& heard);
// Adds edges to peers that have none: ports that heard each other.
void wireByHello(const Fabric& fabric, std::uint32_t rank, const AllHeard& heard, Wiring* wiring);

// The peers above a rank that it is to reach and has no edge to: how many, and the lowest. Plain
// bytes, for the others.
struct Holes {
  std::uint32_t count = 0;
  std::uint32_t first = 0;
};
Holes holesOf(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring);
// Which they are.
std::vector<std::uint32_t> peersWithoutEdge(const Fabric& fabric, std::uint32_t rank,
                                            const Wiring& wiring);
// Of all ranks: has every pair that is to reach each other an edge?
bool isWhole(const std::vector<Holes>& holes);
// An error that names the first pair without an edge, with the reason.
Status checkWhole(const Fabric& fabric, const std::vector<Holes>& holes, const std::string& how);
// Ports of edges to higher ranks that do not share the size of packets, in words: some of them, and
// how many more; empty if there are none.
std::string mtuMismatches(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring);
// Edges to higher ranks whose ends heard others than each other, in words; empty: none.
std::string crossings(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring,
                      const AllHeard& heard);
// A line for people: the rank's ports that reach each peer.
std::string lineOf(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring);

// Lines such as `rc0p1:1 rc1p0:1`, in which a rank or host may stand in front of a device:
// `2/mlx5_0:1 hostb/mlx5_3`; # begins a comment. `file` is for errors.
Status parseCables(const std::string& lines, const std::string& file, std::vector<Cable>* out);
Status readCables(const std::string& file, std::vector<Cable>* out);

}  // namespace weft::verbs
