// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/hash.h"
#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "transports/mapped/setup.h"
#include "transports/verbs/hello.h"
#include "transports/verbs/library.h"
#include "transports/verbs/mesh.h"
#include "transports/verbs/verbs_wire.h"

namespace weft::verbs {
namespace {

constexpr int kHelloMs = 1000;

// What all ranks tell each other first.
struct Opening {
  std::uint32_t ports = 0;
  std::uint32_t unused = 0;
  std::uint64_t cables = 0;  // a hash of WEFT_MESH_FILE
  std::uint64_t job = 0;     // rank 0's counts
  char host[64] = {};
};

// Sets a wire up. Each step that can fail on one rank ends in a gather, so that all ranks get its
// error; what follows from what all know needs none.
class Maker {
 public:
  explicit Maker(const WireSetup& setup) : setup_(setup) {}
  Status make(std::unique_ptr<Wire>* out);

 private:
  bool reachesAnyone() const {
    return std::find(setup_.peers.begin(), setup_.peers.end(), true) != setup_.peers.end();
  }
  Status open();
  Status exchangePorts();
  Status takeOpenings(const std::vector<Opening>& openings);
  Status findWiring();
  Status gatherHello(AllHeard* all);
  Status build();
  Status addDomains();
  Status addConnections();
  Status exchangeEndpoints();
  Status connect();
  Status verify();
  Status agree(const Status& mine) {
    std::vector<std::vector<std::byte>> nothing;
    return gatherBytes(setup_, mine, {}, &nothing);
  }
  std::vector<Edge> edgesOf(std::uint32_t rank) const;
  // Which of the edge's two ends is this rank's.
  std::size_t sideOf(const Edge& edge) const { return edge.rank[0] == setup_.rank ? 0 : 1; }

  const WireSetup& setup_;
  std::vector<Port> ports_;
  std::vector<Cable> cables_;
  Opening opening_;
  std::uint32_t mostPorts_ = 0;
  std::uint64_t job_ = 0;
  Fabric fabric_;
  Wiring wiring_;
  std::map<const Device*, Domain*> domains_;
  std::unique_ptr<VerbsWire> wire_;
  std::vector<Endpoint> theirs_;  // by connection
};

Status Maker::make(std::unique_ptr<Wire>* out) {
  const Status opened = open();
  std::vector<Opening> openings;
  opening_.ports = static_cast<std::uint32_t>(ports_.size());
  WEFT_TRY(gather(setup_, opened, opening_, &openings));
  WEFT_TRY(takeOpenings(openings));
  WEFT_TRY(exchangePorts());
  WEFT_TRY(findWiring());
  wire_ = std::make_unique<VerbsWire>(setup_.names, setup_.rank);
  wire_->setMemory(setup_.segment, setup_.mailbox);
  WEFT_TRY(exchangeEndpoints());
  WEFT_TRY(agree(connect()));
  WEFT_TRY(verify());
  *out = std::move(wire_);
  return {};
}

// ---- who has what -------------------------------------------------------------------------------

Status Maker::open() {
  std::string devices, gid, file;
  WEFT_TRY(readText(Knob::NetDevices, &devices));
  WEFT_TRY(readText(Knob::RoceGid, &gid));
  WEFT_TRY(readText(Knob::MeshFile, &file));
  DeviceFilter filter;
  WEFT_TRY(DeviceFilter::parse(devices, &filter));
  GidRule rule;
  WEFT_TRY(GidRule::parse(gid, &rule));
  if (!file.empty()) WEFT_TRY(readCables(file, &cables_));
  Hash hash;
  for (const Cable& cable : cables_)
    for (const Cable::End& end : cable.end) hash.add(end.where).add(end.device).add(end.port);
  opening_.cables = hash.value();
  const std::string host = hostName();
  std::memcpy(opening_.host, host.data(), std::min(host.size(), sizeof(opening_.host) - 1));
  if (::getrandom(&opening_.job, sizeof(opening_.job), GRND_NONBLOCK) < 0)
    opening_.job = static_cast<std::uint64_t>(::getpid());
  if (!reachesAnyone()) return {};
  const Library* verbs = nullptr;
  WEFT_TRY(Library::get(&verbs));
  return openPorts(*verbs, filter, rule, &ports_);
}

Status Maker::takeOpenings(const std::vector<Opening>& openings) {
  for (std::uint32_t rank = 0; rank < setup_.ranks; ++rank) {
    const Opening& one = openings[rank];
    mostPorts_ = std::max(mostPorts_, one.ports);
    job_ ^= one.job;
    fabric_.hosts.emplace_back(one.host);
    if (one.cables != openings[0].cables)
      return Status::error(Code::Mismatch,
                           text("verbs: WEFT_MESH_FILE of ", setup_.names[rank], " is not that of ",
                                setup_.names[0], "; fix: the same file on all hosts"));
  }
  fabric_.names = setup_.names;
  return {};
}

// The record: the peers that this rank wants, a byte each, then its ports.
Status Maker::exchangePorts() {
  std::vector<std::byte> record(setup_.ranks + mostPorts_ * sizeof(PortCard));
  for (std::uint32_t peer = 0; peer < setup_.ranks; ++peer)
    record[peer] = static_cast<std::byte>(setup_.peers[peer] ? 1 : 0);
  for (std::size_t i = 0; i < ports_.size(); ++i)
    std::memcpy(record.data() + setup_.ranks + i * sizeof(PortCard), &ports_[i].card,
                sizeof(PortCard));
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(gatherBytes(setup_, {}, record, &all));
  for (const auto& theirs : all) {
    std::vector<bool> wanted;
    for (std::uint32_t peer = 0; peer < setup_.ranks; ++peer)
      wanted.push_back(theirs[peer] != std::byte{0});
    fabric_.wanted.push_back(std::move(wanted));
    std::vector<PortCard> cards(mostPorts_);
    std::memcpy(cards.data(), theirs.data() + setup_.ranks, mostPorts_ * sizeof(PortCard));
    std::erase_if(cards, [](const PortCard& card) { return card.port == 0; });
    fabric_.ports.push_back(std::move(cards));
  }
  return {};
}

// ---- who reaches whom ---------------------------------------------------------------------------

Status Maker::findWiring() {
  std::string how = "WEFT_MESH_FILE";
  if (!cables_.empty()) {
    WEFT_TRY(wireByCables(fabric_, cables_, &wiring_));
  } else {
    how = "subnets and hello";
    WEFT_TRY(wireBySubnet(fabric_, &wiring_));
    if (!isWhole(fabric_, wiring_)) {
      AllHeard heard;
      WEFT_TRY(gatherHello(&heard));
      wireByHello(fabric_, heard, &wiring_);
    }
  }
  if (setup_.rank == 0) {
    for (const std::string& line : matrixOf(fabric_, wiring_)) logInfo(line);
    const std::string mismatches = mtuMismatches(fabric_, wiring_);
    if (!mismatches.empty())
      logWarn("verbs: ", mismatches, "; the smaller one is used; fix: the same MTU at both ends");
  }
  return checkWhole(fabric_, wiring_, how);
}

// A rank whose network does not allow it hears nobody; the missing edges then say enough.
Status Maker::gatherHello(AllHeard* all) {
  std::vector<Heard> mine;
  if (const Status status = sayHello(ports_, setup_.rank, job_, kHelloMs, &mine); !status.ok())
    logWarn(status.text());
  std::vector<std::vector<std::byte>> blobs;
  std::vector<std::uint32_t> counts;
  WEFT_TRY(gather(setup_, {}, static_cast<std::uint32_t>(mine.size()), &counts));
  mine.resize(*std::max_element(counts.begin(), counts.end()));
  WEFT_TRY(gatherBytes(setup_, {}, std::as_bytes(std::span(mine)), &blobs));
  all->clear();
  for (std::uint32_t rank = 0; rank < setup_.ranks; ++rank) {
    std::vector<Heard> theirs(counts[rank]);
    std::memcpy(theirs.data(), blobs[rank].data(), counts[rank] * sizeof(Heard));
    all->push_back(std::move(theirs));
  }
  return {};
}

std::vector<Edge> Maker::edgesOf(std::uint32_t rank) const {
  std::vector<Edge> edges;
  for (const Edge& edge : wiring_)
    if (edge.touches(rank)) edges.push_back(edge);
  return edges;
}

// ---- connections --------------------------------------------------------------------------------

Status Maker::build() {
  WEFT_TRY(addDomains());
  return addConnections();
}

Status Maker::addDomains() {
  std::map<const Device*, std::uint32_t> edges;
  for (const Edge& edge : edgesOf(setup_.rank))
    ++edges[ports_[edge.port[sideOf(edge)]].device.get()];
  for (const Port& port : ports_) {
    Device* const device = port.device.get();
    if (edges[device] == 0 || domains_.contains(device)) continue;
    std::unique_ptr<Domain> domain;
    const auto devices = static_cast<std::size_t>(
        std::count_if(edges.begin(), edges.end(), [](const auto& one) { return one.second != 0; }));
    WEFT_TRY(Domain::open(port.device, setup_.segment, setup_.mailbox, devices, &domain));
    domain->plan(edges[device] * Connection::completions(setup_.noticesPerPeer));
    domains_[device] = &wire_->add(std::move(domain));
  }
  return {};
}

Status Maker::addConnections() {
  for (const Edge& edge : edgesOf(setup_.rank)) {
    const std::size_t mine = sideOf(edge);
    const Port& port = ports_[edge.port[mine]];
    auto connection = std::make_unique<Connection>(
        *domains_[port.device.get()], port, edge.linkLocal,
        static_cast<std::uint32_t>(wire_->connections().size()), edge.rank[1 - mine]);
    WEFT_TRY(connection->create(setup_.noticesPerPeer, setup_));
    wire_->add(std::move(connection), port.maxMessage);
  }
  return {};
}

// The record: an endpoint for each edge of the rank, in the order of the wiring.
Status Maker::exchangeEndpoints() {
  const Status built = build();
  std::size_t most = 0;
  for (std::uint32_t rank = 0; rank < setup_.ranks; ++rank)
    most = std::max(most, edgesOf(rank).size());
  std::vector<Endpoint> mine(most);
  if (built.ok())
    std::transform(wire_->connections().begin(), wire_->connections().end(), mine.begin(),
                   [](const auto& connection) { return connection->endpoint(); });
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(gatherBytes(setup_, built, std::as_bytes(std::span(mine)), &all));
  for (const Edge& edge : edgesOf(setup_.rank)) {
    const std::uint32_t peer = edge.rank[1 - sideOf(edge)];
    const std::vector<Edge> edges = edgesOf(peer);
    const auto at = std::find_if(edges.begin(), edges.end(), [&](const Edge& one) {
      return one.rank == edge.rank && one.port == edge.port;
    });
    const auto index = static_cast<std::size_t>(at - edges.begin());
    Endpoint theirs;
    std::memcpy(&theirs, all[peer].data() + index * sizeof(Endpoint), sizeof(Endpoint));
    theirs_.push_back(theirs);
  }
  return {};
}

Status Maker::connect() {
  const std::vector<Edge> edges = edgesOf(setup_.rank);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::size_t other = 1 - sideOf(edges[i]);
    WEFT_TRY(wire_->connections()[i]->connect(
        theirs_[i], fabric_.ports[edges[i].rank[other]][edges[i].port[other]]));
  }
  return {};
}

// Where an edge fails, hello tells whether its cable leads to somebody else.
Status Maker::verify() {
  const Status all = agree(wire_->verify(Deadline::in(setup_.timeoutMs / 4 * 3)));
  if (all.ok()) return {};
  AllHeard heard;
  WEFT_TRY(gatherHello(&heard));
  const std::string crossed = crossings(fabric_, wiring_, heard);
  if (crossed.empty()) return all;
  return Status::error(all.code(), text(all.text(), "; ", crossed,
                                        "; fix: the cables, or "
                                        "addresses or WEFT_MESH_FILE that match them"));
}

}  // namespace

}  // namespace weft::verbs

namespace weft {

Status makeVerbsWire(const WireSetup& setup, std::unique_ptr<Wire>* out) {
  return verbs::Maker(setup).make(out);
}

}  // namespace weft
