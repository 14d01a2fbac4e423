// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/mesh.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"

namespace weft::verbs {
namespace {

bool isUsable(const PortInfo& port) { return port.state == PortState::Usable; }

// What two ports share that are in one subnet.
struct Subnet {
  Gid prefix{};  // the rest is zero
  std::uint32_t bits = 0;
  auto operator<=>(const Subnet&) const = default;
};

std::optional<Subnet> subnetOf(const PortInfo& port) {
  if (!isUsable(port) || port.prefixBits == 0 || kindOf(port.gid) == GidKind::LinkLocal) return {};
  Subnet subnet{port.gid, port.prefixBits};
  for (std::uint32_t bit = subnet.bits; bit < 8 * subnet.prefix.size(); ++bit)
    subnet.prefix[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> bit % 8));
  return subnet;
}

std::string describeSubnet(const PortInfo& port) {
  const std::uint32_t front = kindOf(port.gid) == GidKind::Ipv4 ? 96 : 0;
  if (port.prefixBits == 0) return show(port.gid) + " of unknown prefix";
  return text(show(port.gid), '/', port.prefixBits - front);
}

void sortEdges(Wiring* wiring) {
  std::sort(wiring->begin(), wiring->end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.rank, a.port) < std::tie(b.rank, b.port);
  });
}

Edge makeEdge(std::uint32_t a, std::uint32_t portA, std::uint32_t b, std::uint32_t portB) {
  return a < b ? Edge{{a, b}, {portA, portB}} : Edge{{b, a}, {portB, portA}};
}

// Calls visit(peer) for each that this rank is to reach.
template <class Visit>
void forPeers(const Fabric& fabric, std::uint32_t rank, Visit visit) {
  for (std::uint32_t peer = 0; peer < fabric.ranks(); ++peer)
    if (peer != rank && fabric.wants(rank, peer)) visit(peer);
}

// By rank: is there an edge to it?
std::vector<bool> reachedBy(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring) {
  std::vector<bool> reached(fabric.ranks(), false);
  for (const Edge& edge : wiring) reached[edge.peerOf(rank)] = true;
  return reached;
}

const PortInfo& portAt(const Fabric& fabric, const Edge& edge, std::size_t side) {
  return fabric.ports[edge.rank[side]][edge.port[side]];
}

std::string nameAt(const Fabric& fabric, const Edge& edge, std::size_t side) {
  return fabric.nameOf(edge.rank[side], edge.port[side]);
}

bool isSwitched(const Fabric& fabric) {
  std::optional<Subnet> all;
  for (const auto& ports : fabric.ports)
    for (const PortInfo& port : ports) {
      if (!isUsable(port)) continue;
      const std::optional<Subnet> one = subnetOf(port);
      if (!one || one != all.value_or(*one)) return false;
      all = one;
    }
  return all.has_value();
}

using PortOfSubnet = std::map<Subnet, std::uint32_t>;

Status findSubnets(const Fabric& fabric, std::uint32_t rank, PortOfSubnet* out) {
  const auto& ports = fabric.ports[rank];
  for (std::uint32_t j = 0; j < ports.size(); ++j) {
    const std::optional<Subnet> subnet = subnetOf(ports[j]);
    if (!subnet) continue;
    const auto [other, isNew] = out->emplace(*subnet, j);
    if (isNew) continue;
    const std::uint32_t i = other->second;
    return Status::error(Code::InvalidUsage, "verbs: ", fabric.nameOf(rank, i), " (",
                         describeSubnet(ports[i]), ") and ", ports[j].name(), " (",
                         describeSubnet(ports[j]),
                         ") are in one subnet, so that nobody can tell which of them reaches "
                         "whom; fix: a subnet of its own for each cable, a rank's own ports "
                         "in WEFT_NET_DEVICES, or the cables in WEFT_MESH_FILE");
  }
  return {};
}

std::vector<std::uint32_t> usablePorts(const Fabric& fabric, std::uint32_t rank) {
  std::vector<std::uint32_t> usable;
  for (std::uint32_t i = 0; i < fabric.ports[rank].size(); ++i)
    if (isUsable(fabric.ports[rank][i])) usable.push_back(i);
  return usable;
}

void wireSwitch(const Fabric& fabric, std::uint32_t rank, Wiring* out) {
  const auto mine = usablePorts(fabric, rank);
  forPeers(fabric, rank, [&](std::uint32_t peer) {
    const auto theirs = usablePorts(fabric, peer);
    for (std::size_t k = 0; k < std::min(mine.size(), theirs.size()); ++k)
      out->push_back(makeEdge(rank, mine[k], peer, theirs[k]));
  });
}

struct Place {
  std::uint32_t rank = 0;
  std::uint32_t port = 0;
  auto operator<=>(const Place&) const = default;
};

std::string nameOf(const Cable::End& end) {
  return text(end.where, end.where.empty() ? "" : "/", end.device, ':', end.port);
}

// All ports by the name that a cable gives them.
class PortBook {
 public:
  explicit PortBook(const Fabric& fabric) : fabric_(fabric) {
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank)
      for (std::uint32_t i = 0; i < fabric.ports[rank].size(); ++i) {
        const PortInfo& port = fabric.ports[rank][i];
        places_[{port.device, port.port}].push_back({rank, i});
      }
  }
  std::vector<Place> of(const Cable::End& end) const {
    const auto found = places_.find({end.device, end.port});
    if (found == places_.end()) return {};
    std::vector<Place> places = found->second;
    std::erase_if(places, [&](Place at) {
      return !end.where.empty() && end.where != std::to_string(at.rank) &&
             end.where != fabric_.hosts[at.rank];
    });
    return places;
  }

 private:
  const Fabric& fabric_;
  std::map<std::pair<std::string, std::uint32_t>, std::vector<Place>> places_;
};

Status badCable(const Cable& cable, const std::string& why) {
  return Status::error(Code::InvalidUsage, "verbs: WEFT_MESH_FILE line ", cable.line, ", ",
                       nameOf(cable.end[0]), ' ', nameOf(cable.end[1]), ": ", why);
}

// Both ends of the cable; `taken`: ends that are both usable, of the cables before it. False: an end
// that no rank has.
Status findEnds(const Fabric& fabric, const PortBook& book, const Cable& cable,
                const std::set<Place>& taken, std::array<Place, 2>* ends, bool* found) {
  *found = false;
  for (const std::size_t side : {0u, 1u}) {
    const std::vector<Place> places = book.of(cable.end[side]);
    if (places.empty()) return {};
    if (places.size() > 1)
      return badCable(cable, text(nameOf(cable.end[side]), " may be that of rank ", places[0].rank,
                                  " or of rank ", places[1].rank,
                                  "; fix: RANK/DEVICE:PORT, or WEFT_NET_DEVICES"));
    const Place place = (*ends)[side] = places[0];
    if (taken.contains(place))
      return badCable(cable, text(fabric.nameOf(place.rank, place.port),
                                  " has another cable already; fix: one line for each cable"));
  }
  if ((*ends)[0].rank == (*ends)[1].rank)
    return badCable(cable, text("both ends are of ", fabric.names[(*ends)[0].rank]));
  *found = true;
  return {};
}

// The first of many, and how many more there are.
class Sample {
 public:
  void add(const std::string& one) {
    if (++count_ <= kNamed) words_ += text(words_.empty() ? "" : ", ", one);
  }
  std::string words() const {
    return count_ <= kNamed ? words_ : text(words_, ", and ", count_ - kNamed, " more");
  }

 private:
  static constexpr std::size_t kNamed = 8;
  std::string words_;
  std::size_t count_ = 0;
};

// The GIDs of a cable's ends need not be of one subnet if both are link-local.
void preferGlobal(const Fabric& fabric, Wiring* wiring) {
  for (Edge& edge : *wiring) {
    const PortInfo& a = portAt(fabric, edge, 0);
    const PortInfo& b = portAt(fabric, edge, 1);
    edge.linkLocal = kindOf(a.gid) != kindOf(b.gid) && a.linkLocal != Gid{} && b.linkLocal != Gid{};
  }
}

bool heard(const AllHeard& all, Place at, Place other) {
  return std::ranges::binary_search(all[at.rank], Heard{at.port, other.rank, other.port});
}

// Ports of two ranks that heard each other, each once.
void pairUp(std::uint32_t a, std::uint32_t b, const AllHeard& all, Wiring* out) {
  std::set<Place> taken;
  for (const Heard& one : all[a]) {
    const Place here{a, one.at}, there{b, one.port};
    if (one.rank != b || taken.contains(here) || taken.contains(there)) continue;
    if (!heard(all, there, here)) continue;
    taken.insert({here, there});
    out->push_back(makeEdge(a, one.at, b, one.port));
    out->back().linkLocal = true;
  }
}

std::string describeState(const PortInfo& port) {
  switch (port.state) {
    case PortState::Usable:
      return text(port.name(), " (", describeSubnet(port), ")");
    case PortState::Down:
      return port.name() + " is down";
    case PortState::NotEthernet:
      return port.name() + " is not Ethernet (weft speaks RoCE v2)";
    case PortState::NoGid:
      return port.name() + " has no RoCE v2 GID that WEFT_ROCE_GID allows";
  }
  return port.name();
}

std::string portsOf(const Fabric& fabric, std::uint32_t rank) {
  const std::string list = joined(fabric.ports[rank], ", ", describeState);
  return text(fabric.names[rank], ": ", list.empty() ? "no RDMA port" : list);
}

}  // namespace

std::string Fabric::nameOf(std::uint32_t rank, std::uint32_t port) const {
  return text(ports[rank][port].name(), " of ", names[rank]);
}

Status wireBySubnet(const Fabric& fabric, std::uint32_t rank, Wiring* out) {
  out->clear();
  if (isSwitched(fabric)) {
    wireSwitch(fabric, rank, out);
    return {};
  }
  std::vector<PortOfSubnet> subnets(fabric.ranks());
  for (std::uint32_t one = 0; one < fabric.ranks(); ++one)
    WEFT_TRY(findSubnets(fabric, one, &subnets[one]));
  forPeers(fabric, rank, [&](std::uint32_t peer) {
    for (const auto& [subnet, theirs] : subnets[peer])
      if (const auto mine = subnets[rank].find(subnet); mine != subnets[rank].end())
        out->push_back(makeEdge(rank, mine->second, peer, theirs));
  });
  sortEdges(out);
  return {};
}

Status wireByCables(const Fabric& fabric, std::uint32_t rank, const std::vector<Cable>& cables,
                    Wiring* out) {
  out->clear();
  const PortBook book(fabric);
  std::set<Place> taken;
  for (const Cable& cable : cables) {
    std::array<Place, 2> ends;
    bool found = false;
    WEFT_TRY(findEnds(fabric, book, cable, taken, &ends, &found));
    const auto usable = [&](Place at) { return isUsable(fabric.ports[at.rank][at.port]); };
    if (!found || !usable(ends[0]) || !usable(ends[1])) continue;
    taken.insert({ends[0], ends[1]});
    const bool own = ends[0].rank == rank || ends[1].rank == rank;
    if (own && fabric.wants(ends[0].rank, ends[1].rank))
      out->push_back(makeEdge(ends[0].rank, ends[0].port, ends[1].rank, ends[1].port));
  }
  preferGlobal(fabric, out);
  sortEdges(out);
  return {};
}

void tidy(const Fabric& fabric, AllHeard* all) {
  for (std::uint32_t rank = 0; rank < all->size(); ++rank) {
    std::erase_if((*all)[rank], [&](const Heard& one) {
      return one.at >= fabric.ports[rank].size() || one.rank >= fabric.ranks() ||
             one.port >= fabric.ports[one.rank].size();
    });
    std::ranges::sort((*all)[rank]);
  }
}

bool isAnySilent(const Fabric& fabric, const AllHeard& all) {
  for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank)
    for (std::uint32_t port = 0; port < fabric.ports[rank].size(); ++port)
      if (fabric.ports[rank][port].onNetwork != 0 &&
          std::ranges::none_of(all[rank], [&](const Heard& one) { return one.at == port; }))
        return true;
  return false;
}

void wireByHello(const Fabric& fabric, std::uint32_t rank, const AllHeard& all, Wiring* wiring) {
  const std::vector<bool> reached = reachedBy(fabric, rank, *wiring);
  forPeers(fabric, rank, [&](std::uint32_t peer) {
    if (!reached[peer]) pairUp(std::min(rank, peer), std::max(rank, peer), all, wiring);
  });
  sortEdges(wiring);
}

std::vector<std::uint32_t> peersWithoutEdge(const Fabric& fabric, std::uint32_t rank,
                                            const Wiring& wiring) {
  const std::vector<bool> reached = reachedBy(fabric, rank, wiring);
  std::vector<std::uint32_t> peers;
  forPeers(fabric, rank, [&](std::uint32_t peer) {
    if (peer > rank && !reached[peer]) peers.push_back(peer);
  });
  return peers;
}

Holes holesOf(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring) {
  const std::vector<std::uint32_t> peers = peersWithoutEdge(fabric, rank, wiring);
  return {static_cast<std::uint32_t>(peers.size()), peers.empty() ? 0 : peers[0]};
}

bool isWhole(const std::vector<Holes>& holes) {
  return std::ranges::all_of(holes, [](const Holes& one) { return one.count == 0; });
}

Status checkWhole(const Fabric& fabric, const std::vector<Holes>& holes, const std::string& how) {
  if (isWhole(holes)) return {};
  std::uint64_t count = 0;
  for (const Holes& one : holes) count += one.count;
  const auto lowest = std::ranges::find_if(holes, [](const Holes& one) { return one.count != 0; });
  const auto a = static_cast<std::uint32_t>(lowest - holes.begin());
  const std::uint32_t b = std::min(lowest->first, fabric.ranks() - 1);  // whatever it has said
  return Status::error(
      Code::InvalidUsage, "verbs: no edge between ", fabric.names[a], " and ", fabric.names[b],
      " by ", how, " (", portsOf(fabric, a), "; ", portsOf(fabric, b), ")",
      count > 1 ? text(", nor between ", count - 1, " other pairs") : "",
      "; fix: cable and ports up, both ends of a cable in one subnet, or the right cable in "
      "WEFT_MESH_FILE");
}

std::string mtuMismatches(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring) {
  Sample sample;
  for (const Edge& edge : wiring) {
    const std::uint32_t a = portAt(fabric, edge, 0).mtu, b = portAt(fabric, edge, 1).mtu;
    if (edge.rank[0] == rank && a != b)
      sample.add(
          text(nameAt(fabric, edge, 0), " has MTU ", a, " and ", nameAt(fabric, edge, 1), " ", b));
  }
  return sample.words();
}

std::string crossings(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring,
                      const AllHeard& all) {
  Sample sample;
  for (const Edge& edge : wiring)
    for (const std::size_t side : {0u, 1u}) {
      const Place here{edge.rank[side], edge.port[side]};
      const Place there{edge.rank[1 - side], edge.port[1 - side]};
      if (edge.rank[0] != rank || heard(all, here, there)) continue;
      const auto& list = all[here.rank];
      const auto other = std::ranges::lower_bound(list, Heard{here.port, 0, 0});
      if (other != list.end() && other->at == here.port)
        sample.add(text(nameAt(fabric, edge, side), " is cabled to ",
                        fabric.nameOf(other->rank, other->port), ", not to ",
                        nameAt(fabric, edge, 1 - side)));
    }
  return sample.words();
}

std::string lineOf(const Fabric& fabric, std::uint32_t rank, const Wiring& wiring) {
  std::vector<std::string> ports(fabric.ranks());
  for (const Edge& edge : wiring) {
    std::string& words = ports[edge.peerOf(rank)];
    words += text(words.empty() ? "" : "+", portAt(fabric, edge, edge.sideOf(rank)).name());
  }
  std::string line = text("verbs wiring, rank ", rank, ":");
  for (std::uint32_t peer = 0; peer < fabric.ranks(); ++peer) {
    const char* const none = peer == rank ? "self" : fabric.wants(rank, peer) ? "NONE" : "-";
    line += text(' ', peer, '=', ports[peer].empty() ? none : ports[peer]);
  }
  return line;
}

}  // namespace weft::verbs
