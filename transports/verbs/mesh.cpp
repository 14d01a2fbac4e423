// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/mesh.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace weft::verbs {
namespace {

bool isUsable(const PortInfo& port) { return port.state == PortState::Usable; }

bool hasSubnet(const PortInfo& port) {
  return isUsable(port) && port.prefixBits != 0 && kindOf(port.gid) != GidKind::LinkLocal;
}

bool shareSubnet(const PortInfo& a, const PortInfo& b) {
  return hasSubnet(a) && hasSubnet(b) && a.prefixBits == b.prefixBits &&
         sharePrefix(a.gid, b.gid, a.prefixBits);
}

std::string subnetOf(const PortInfo& port) {
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

// Calls visit(a, b) for each pair that is to reach each other.
template <class Visit>
void forPairs(const Fabric& fabric, Visit visit) {
  for (std::uint32_t a = 0; a < fabric.ranks(); ++a)
    for (std::uint32_t b = a + 1; b < fabric.ranks(); ++b)
      if (fabric.wants(a, b)) visit(a, b);
}

const PortInfo& portAt(const Fabric& fabric, const Edge& edge, std::size_t side) {
  return fabric.ports[edge.rank[side]][edge.port[side]];
}

std::string nameAt(const Fabric& fabric, const Edge& edge, std::size_t side) {
  return fabric.nameOf(edge.rank[side], edge.port[side]);
}

bool hasEdge(const Wiring& wiring, std::uint32_t a, std::uint32_t b) {
  return std::ranges::any_of(wiring, [&](const Edge& edge) { return edge.joins(a, b); });
}

bool isSwitched(const Fabric& fabric) {
  const PortInfo* first = nullptr;
  for (const auto& ports : fabric.ports)
    for (const PortInfo& port : ports) {
      if (!isUsable(port)) continue;
      if (first == nullptr) first = &port;
      if (!shareSubnet(*first, port)) return false;
    }
  return first != nullptr;
}

Status checkOneEach(const Fabric& fabric) {
  for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
    const auto& ports = fabric.ports[rank];
    for (std::uint32_t i = 0; i < ports.size(); ++i)
      for (std::uint32_t j = i + 1; j < ports.size(); ++j)
        if (shareSubnet(ports[i], ports[j]))
          return Status::error(Code::InvalidUsage, "verbs: ", fabric.nameOf(rank, i), " (",
                               subnetOf(ports[i]), ") and ", ports[j].name(), " (",
                               subnetOf(ports[j]),
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

void wireSwitch(const Fabric& fabric, Wiring* out) {
  forPairs(fabric, [&](std::uint32_t a, std::uint32_t b) {
    const auto of = usablePorts(fabric, a), to = usablePorts(fabric, b);
    for (std::size_t k = 0; k < std::min(of.size(), to.size()); ++k)
      out->push_back(makeEdge(a, of[k], b, to[k]));
  });
}

struct Place {
  std::uint32_t rank = 0;
  std::uint32_t port = 0;
};

std::string nameOf(const Cable::End& end) {
  return text(end.where, end.where.empty() ? "" : "/", end.device, ':', end.port);
}

std::vector<Place> placesOf(const Fabric& fabric, const Cable::End& end) {
  std::vector<Place> places;
  for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
    if (!end.where.empty() && end.where != std::to_string(rank) && end.where != fabric.hosts[rank])
      continue;
    for (std::uint32_t i = 0; i < fabric.ports[rank].size(); ++i) {
      const PortInfo& port = fabric.ports[rank][i];
      if (end.device == port.device && end.port == port.port) places.push_back({rank, i});
    }
  }
  return places;
}

Status badCable(const Cable& cable, const std::string& why) {
  return Status::error(Code::InvalidUsage, "verbs: WEFT_MESH_FILE line ", cable.line, ", ",
                       nameOf(cable.end[0]), ' ', nameOf(cable.end[1]), ": ", why);
}

Status checkFree(const Fabric& fabric, const Wiring& wiring, const Cable& cable, Place place) {
  for (const Edge& edge : wiring)
    for (const std::size_t side : {0u, 1u})
      if (edge.rank[side] == place.rank && edge.port[side] == place.port)
        return badCable(cable, text(fabric.nameOf(place.rank, place.port),
                                    " has another cable already; fix: one line for each cable"));
  return {};
}

Status addCable(const Fabric& fabric, const Cable& cable, Wiring* out) {
  std::array<Place, 2> place;
  for (const std::size_t side : {0u, 1u}) {
    const std::vector<Place> places = placesOf(fabric, cable.end[side]);
    if (places.empty()) return {};
    if (places.size() > 1)
      return badCable(cable, text(nameOf(cable.end[side]), " may be that of rank ", places[0].rank,
                                  " or of rank ", places[1].rank,
                                  "; fix: RANK/DEVICE:PORT, or WEFT_NET_DEVICES"));
    place[side] = places[0];
    WEFT_TRY(checkFree(fabric, *out, cable, place[side]));
  }
  if (place[0].rank == place[1].rank)
    return badCable(cable, text("both ends are of ", fabric.names[place[0].rank]));
  const auto usable = [&](Place at) { return isUsable(fabric.ports[at.rank][at.port]); };
  if (usable(place[0]) && usable(place[1]))
    out->push_back(makeEdge(place[0].rank, place[0].port, place[1].rank, place[1].port));
  return {};
}

// The GIDs of a cable's ends need not be of one subnet if both are link-local.
void preferGlobal(const Fabric& fabric, Wiring* wiring) {
  for (Edge& edge : *wiring) {
    const PortInfo& a = portAt(fabric, edge, 0);
    const PortInfo& b = portAt(fabric, edge, 1);
    edge.linkLocal = kindOf(a.gid) != kindOf(b.gid) && a.linkLocal != Gid{} && b.linkLocal != Gid{};
  }
}

bool heard(const AllHeard& all, Place at, Place other) {
  const auto& list = all[at.rank];
  return std::ranges::find(list, Heard{at.port, other.rank, other.port}) != list.end();
}

std::string describeState(const PortInfo& port) {
  switch (port.state) {
    case PortState::Usable:
      return text(port.name(), " (", subnetOf(port), ")");
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

// The pairs that are to reach each other and have no edge.
std::vector<std::array<std::uint32_t, 2>> holesIn(const Fabric& fabric, const Wiring& wiring) {
  std::vector<std::array<std::uint32_t, 2>> holes;
  forPairs(fabric, [&](std::uint32_t a, std::uint32_t b) {
    if (!hasEdge(wiring, a, b)) holes.push_back({a, b});
  });
  return holes;
}

}  // namespace

std::string Fabric::nameOf(std::uint32_t rank, std::uint32_t port) const {
  return text(ports[rank][port].name(), " of ", names[rank]);
}

Status wireBySubnet(const Fabric& fabric, Wiring* out) {
  out->clear();
  if (isSwitched(fabric)) {
    wireSwitch(fabric, out);
    return {};
  }
  WEFT_TRY(checkOneEach(fabric));
  forPairs(fabric, [&](std::uint32_t a, std::uint32_t b) {
    for (std::uint32_t i = 0; i < fabric.ports[a].size(); ++i)
      for (std::uint32_t j = 0; j < fabric.ports[b].size(); ++j)
        if (shareSubnet(fabric.ports[a][i], fabric.ports[b][j]))
          out->push_back(makeEdge(a, i, b, j));
  });
  return {};
}

Status wireByCables(const Fabric& fabric, const std::vector<Cable>& cables, Wiring* out) {
  out->clear();
  for (const Cable& cable : cables) WEFT_TRY(addCable(fabric, cable, out));
  std::erase_if(*out, [&](const Edge& edge) { return !fabric.wants(edge.rank[0], edge.rank[1]); });
  preferGlobal(fabric, out);
  sortEdges(out);
  return {};
}

void wireByHello(const Fabric& fabric, const AllHeard& all, Wiring* wiring) {
  Wiring found;
  forPairs(fabric, [&](std::uint32_t a, std::uint32_t b) {
    if (hasEdge(*wiring, a, b)) return;
    std::vector<bool> taken(fabric.ports[b].size(), false);
    for (std::uint32_t i = 0; i < fabric.ports[a].size(); ++i)
      for (std::uint32_t j = 0; j < fabric.ports[b].size(); ++j) {
        const bool mutual = heard(all, {a, i}, {b, j}) && heard(all, {b, j}, {a, i});
        if (!mutual || taken[j]) continue;
        taken[j] = true;
        found.push_back(makeEdge(a, i, b, j));
        found.back().linkLocal = true;
        break;
      }
  });
  wiring->insert(wiring->end(), found.begin(), found.end());
  sortEdges(wiring);
}

bool isWhole(const Fabric& fabric, const Wiring& wiring) { return holesIn(fabric, wiring).empty(); }

Status checkWhole(const Fabric& fabric, const Wiring& wiring, const std::string& how) {
  const auto holes = holesIn(fabric, wiring);
  if (holes.empty()) return {};
  const auto [a, b] = holes[0];
  return Status::error(
      Code::InvalidUsage, "verbs: no edge between ", fabric.names[a], " and ", fabric.names[b],
      " by ", how, " (", portsOf(fabric, a), "; ", portsOf(fabric, b), ")",
      holes.size() > 1 ? text(", nor between ", holes.size() - 1, " other pairs") : "",
      "; fix: cable and ports up, both ends of a cable in one subnet, or the right cable in "
      "WEFT_MESH_FILE");
}

std::string mtuMismatches(const Fabric& fabric, const Wiring& wiring) {
  std::string all;
  for (const Edge& edge : wiring) {
    const std::uint32_t a = portAt(fabric, edge, 0).mtu, b = portAt(fabric, edge, 1).mtu;
    if (a != b)
      all += text(all.empty() ? "" : ", ", nameAt(fabric, edge, 0), " has MTU ", a, " and ",
                  nameAt(fabric, edge, 1), " ", b);
  }
  return all;
}

std::string crossings(const Fabric& fabric, const Wiring& wiring, const AllHeard& all) {
  std::string words;
  for (const Edge& edge : wiring)
    for (const std::size_t side : {0u, 1u}) {
      const Place here{edge.rank[side], edge.port[side]};
      const Place there{edge.rank[1 - side], edge.port[1 - side]};
      if (heard(all, here, there)) continue;
      for (const Heard& other : all[here.rank]) {
        if (other.at != here.port) continue;
        words += text(words.empty() ? "" : ", ", nameAt(fabric, edge, side), " is cabled to ",
                      fabric.nameOf(other.rank, other.port), ", not to ",
                      nameAt(fabric, edge, 1 - side));
        break;
      }
    }
  return words;
}

std::vector<std::string> matrixOf(const Fabric& fabric, const Wiring& wiring) {
  std::vector<std::string> lines;
  for (std::uint32_t a = 0; a < fabric.ranks(); ++a) {
    std::string line = text("verbs wiring, rank ", a, ":");
    for (std::uint32_t b = 0; b < fabric.ranks(); ++b) {
      std::string ports;
      for (const Edge& edge : wiring)
        if (edge.joins(a, b))
          ports += text(ports.empty() ? "" : "+",
                        fabric.ports[a][edge.port[edge.rank[0] == a ? 0 : 1]].name());
      const char* const none = a == b ? "self" : fabric.wants(a, b) ? "NONE" : "-";
      line += text(' ', b, '=', ports.empty() ? none : ports);
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace weft::verbs
