// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "transports/setup.h"
#include "transports/verbs/hello.h"
#include "transports/verbs/library.h"
#include "transports/verbs/mesh.h"
#include "transports/verbs/verbs.h"
#include "transports/verbs/verbs_wire.h"

namespace weft::verbs {
namespace {

constexpr int kHelloMs = 1000;

// What all ranks tell each other first.
struct Opening {
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
  bool reachesAnyone() const { return std::ranges::count(setup_.peers, true) != 0; }
  Status open();
  Status exchangePorts();
  Status takeOpenings(const std::vector<Opening>& openings);
  Status findWiring();
  Status gatherHello(AllHeard* all);
  Status addDomains();
  Status addConnections();
  Status exchangeEndpoints();
  Status connect();
  Status verify();
  std::vector<Edge> edgesOf(std::uint32_t rank) const;
  // Which of the edge's two ends is this rank's.
  std::size_t sideOf(const Edge& edge) const { return edge.rank[0] == setup_.rank ? 0 : 1; }

  const WireSetup& setup_;
  std::vector<Port> ports_;
  std::vector<Cable> cables_;
  Opening opening_;
  std::uint64_t job_ = 0;
  Fabric fabric_;
  Wiring wiring_;
  std::map<const Device*, Domain*> domains_;
  std::unique_ptr<VerbsWire> wire_;
  std::vector<std::vector<Endpoint>> endpoints_;  // by rank and edge
};

Status Maker::make(std::unique_ptr<Wire>* out) {
  const Status opened = open();
  std::vector<Opening> openings;
  WEFT_TRY(gather(setup_, opened, opening_, &openings));
  WEFT_TRY(takeOpenings(openings));
  WEFT_TRY(exchangePorts());
  WEFT_TRY(findWiring());
  wire_ = std::make_unique<VerbsWire>(setup_);
  WEFT_TRY(exchangeEndpoints());
  WEFT_TRY(agree(setup_, connect()));
  WEFT_TRY(verify());
  *out = std::move(wire_);
  return {};
}

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
  copyText(opening_.host, hostName());
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
    job_ ^= one.job;
    fabric_.hosts.push_back(transport::fieldText(one.host));
    if (one.cables != openings[0].cables)
      return Status::error(Code::Mismatch, "verbs: WEFT_MESH_FILE of ", setup_.names[rank],
                           " is not that of ", setup_.names[0],
                           "; fix: the same file on all hosts");
  }
  fabric_.names = setup_.names;
  return {};
}

Status Maker::exchangePorts() {
  std::vector<std::uint8_t> wanted(setup_.peers.begin(), setup_.peers.end());
  std::vector<std::vector<std::uint8_t>> allWanted;
  WEFT_TRY(gatherLists(setup_, {}, wanted, &allWanted));
  for (auto& theirs : allWanted) {
    theirs.resize(setup_.ranks);  // whatever it has said
    fabric_.wanted.emplace_back(theirs.begin(), theirs.end());
  }
  std::vector<PortInfo> infos;
  for (const Port& port : ports_) infos.push_back(port.info);
  WEFT_TRY(gatherLists(setup_, {}, infos, &fabric_.ports));
  for (auto& theirs : fabric_.ports)
    for (PortInfo& info : theirs) info.device[sizeof(info.device) - 1] = '\0';
  return {};
}

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
  return gatherLists(setup_, {}, mine, all);
}

std::vector<Edge> Maker::edgesOf(std::uint32_t rank) const {
  std::vector<Edge> edges;
  for (const Edge& edge : wiring_)
    if (edge.touches(rank)) edges.push_back(edge);
  return edges;
}

Status Maker::addDomains() {
  std::map<std::shared_ptr<Device>, std::uint32_t> edges;
  for (const Edge& edge : edgesOf(setup_.rank)) ++edges[ports_[edge.port[sideOf(edge)]].device];
  for (const auto& [device, count] : edges) {
    std::unique_ptr<Domain> domain;
    WEFT_TRY(Domain::open(device, setup_.regions, edges.size(), &domain));
    domain->plan(count * Connection::completions(setup_.completionsPerPeer));
    domains_[device.get()] = &wire_->add(std::move(domain));
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
    WEFT_TRY(connection->create(setup_.completionsPerPeer));
    wire_->add(std::move(connection), port.maxMessage);
  }
  return {};
}

// Each rank tells an endpoint for each of its edges, in the order of the wiring.
Status Maker::exchangeEndpoints() {
  const Status opened = addDomains();
  const Status built = opened.ok() ? addConnections() : opened;
  std::vector<Endpoint> mine;
  for (const auto& connection : wire_->connections()) mine.push_back(connection->endpoint());
  return gatherLists(setup_, built, mine, &endpoints_);
}

Status Maker::connect() {
  const std::vector<Edge> edges = edgesOf(setup_.rank);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::size_t other = 1 - sideOf(edges[i]);
    const std::uint32_t peer = edges[i].rank[other];
    const std::vector<Edge> theirs = edgesOf(peer);
    const auto at = std::ranges::find(theirs, edges[i]) - theirs.begin();
    WEFT_TRY(wire_->connections()[i]->connect(endpoints_[peer].at(static_cast<std::size_t>(at)),
                                              fabric_.ports[peer][edges[i].port[other]]));
  }
  return {};
}

// Where an edge fails, hello tells whether its cable leads to somebody else.
Status Maker::verify() {
  const Status all = agree(setup_, wire_->verify(Deadline::in(setup_.timeoutMs / 4 * 3)));
  if (all.ok()) return {};
  AllHeard heard;
  WEFT_TRY(gatherHello(&heard));
  const std::string crossed = crossings(fabric_, wiring_, heard);
  if (crossed.empty()) return all;
  ErrorData data = all.data();
  data.what += "; " + crossed;
  data.fix = "the cables, or addresses or WEFT_MESH_FILE that match them";
  return Status::error(std::move(data));
}

}  // namespace

Status makeVerbsWire(const WireSetup& setup, std::unique_ptr<Wire>* out) {
  return Maker(setup).make(out);
}

}  // namespace weft::verbs
