// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/verbs/port.h"

// Which port reaches which peer: pure functions of what all ranks know, so that all find the same.
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
  bool touches(std::uint32_t one) const { return rank[0] == one || rank[1] == one; }
  bool joins(std::uint32_t a, std::uint32_t b) const { return touches(a) && touches(b) && a != b; }
};
using Wiring = std::vector<Edge>;

// What the rank heard: a hello of `rank`'s `port` on its own port `at`.
struct Heard {
  std::uint32_t at = 0;
  std::uint32_t rank = 0;
  std::uint32_t port = 0;
  bool operator==(const Heard&) const = default;
};
using AllHeard = std::vector<std::vector<Heard>>;  // by rank

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

// Joins the ports of each pair that are in one subnet. Two ports of a rank in one subnet are
// an error, as nobody can tell which of them is cabled to whom; unless all ports of all ranks are
// in one subnet: then that is a switch, and the k-th port of a rank reaches the k-th of each other.
Status wireBySubnet(const Fabric& fabric, Wiring* out);
// What the cables say. A cable with an end that no rank has is for others.
Status wireByCables(const Fabric& fabric, const std::vector<Cable>& cables, Wiring* out);
// Adds edges for pairs that have none: ports that heard each other.
void wireByHello(const Fabric& fabric, const AllHeard& heard, Wiring* wiring);

// Has every pair that is to reach each other an edge?
bool isWhole(const Fabric& fabric, const Wiring& wiring);
// An error that names the pairs without an edge, with the reason for each.
Status checkWhole(const Fabric& fabric, const Wiring& wiring, const std::string& how);
// Ports that share an edge but not the size of packets, in words; empty if there are none.
std::string mtuMismatches(const Fabric& fabric, const Wiring& wiring);
// Edges whose ends heard others than each other, in words; empty if there are none.
std::string crossings(const Fabric& fabric, const Wiring& wiring, const AllHeard& heard);
// Lines for people: by rank the port that reaches each peer.
std::vector<std::string> matrixOf(const Fabric& fabric, const Wiring& wiring);

// Lines such as `rc0p1:1 rc1p0:1`, in which a rank or host may stand in front of a device:
// `2/mlx5_0:1 hostb/mlx5_3`; # begins a comment. `file` is for errors.
Status parseCables(const std::string& lines, const std::string& file, std::vector<Cable>* out);
Status readCables(const std::string& file, std::vector<Cable>* out);

}  // namespace weft::verbs
