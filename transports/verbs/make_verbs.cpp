// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <algorithm>
#include <map>
#include <set>

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
constexpr int kLongHelloMs = 4000;  // where a busy host has kept a port from saying or hearing it
constexpr int kFirstRoundMs = 100;  // of pings; each round takes twice as long as the one before
constexpr int kMostSilenceMs = 6000;

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
  Status gatherHoles(std::vector<Holes>* all) const;
  Status tellUncabled(std::vector<std::uint32_t> peers) const;
  void describeWiring() const;
  Status wireByHellos(std::vector<Holes>* holes);
  Status gatherHello(int ms, AllHeard* all);
  Status addDomains();
  Status addMailboxes();
  Status exchangeOffers();
  Status setWays();
  Status tryEdges();
  Status verify();
  std::uint32_t portOf(const Edge& edge) const { return edge.port[edge.sideOf(setup_.rank)]; }
  std::uint32_t farPortOf(const Edge& edge) const {
    return edge.port[1 - edge.sideOf(setup_.rank)];
  }

  const WireSetup& setup_;
  std::vector<Port> ports_;
  std::vector<Cable> cables_;
  Opening opening_;
  std::uint64_t job_ = 0;
  Fabric fabric_;
  Wiring wiring_;
  std::map<const Device*, Domain*> domains_;
  std::map<std::uint32_t, Mailbox*> mailboxes_;  // by port
  std::unique_ptr<VerbsWire> wire_;
  std::vector<std::vector<PortOffer>> offers_;  // by rank and port
};

Status Maker::make(std::unique_ptr<Wire>* out) {
  const Status opened = open();
  std::vector<Opening> openings;
  WEFT_TRY(gather(setup_, opened, opening_, &openings));
  WEFT_TRY(takeOpenings(openings));
  WEFT_TRY(exchangePorts());
  WEFT_TRY(findWiring());
  wire_ = std::make_unique<VerbsWire>(setup_);
  WEFT_TRY(exchangeOffers());
  WEFT_TRY(agree(setup_, setWays()));
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
  if (!file.empty()) WEFT_TRY(ofVariable("WEFT_MESH_FILE", readCables(file, &cables_)));
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
  std::vector<Holes> holes;
  if (!cables_.empty()) {
    WEFT_TRY(wireByCables(fabric_, setup_.rank, cables_, &wiring_));
    WEFT_TRY(gatherHoles(&holes));
  } else {
    how = "subnets and hello";
    WEFT_TRY(wireBySubnet(fabric_, setup_.rank, &wiring_));
    WEFT_TRY(gatherHoles(&holes));
    if (!isWhole(holes)) WEFT_TRY(wireByHellos(&holes));
  }
  describeWiring();
  const Status whole = checkWhole(fabric_, holes, how);
  if (!whole.ok()) WEFT_TRY(tellUncabled(peersWithoutEdge(fabric_, setup_.rank, wiring_)));
  return whole;
}

Status Maker::wireByHellos(std::vector<Holes>* holes) {
  for (const int ms : {kHelloMs, std::min(kLongHelloMs, setup_.timeoutMs / 2)}) {
    AllHeard heard;
    WEFT_TRY(gatherHello(ms, &heard));
    wireByHello(fabric_, setup_.rank, heard, &wiring_);
    WEFT_TRY(gatherHoles(holes));
    if (isWhole(*holes) || !isAnySilent(fabric_, heard)) break;
  }
  return {};
}

// Who makes something of the error may go around these pairs.
Status Maker::tellUncabled(std::vector<std::uint32_t> peers) const {
  if (setup_.uncabled == nullptr) return {};
  std::vector<std::vector<std::uint32_t>> all;
  WEFT_TRY(gatherLists(setup_, {}, std::move(peers), &all));
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;  // both ends may name one
  for (std::uint32_t rank = 0; rank < all.size(); ++rank)
    for (const std::uint32_t peer : all[rank])
      if (peer < setup_.ranks && peer != rank) pairs.insert(std::minmax(rank, peer));
  setup_.uncabled->assign(pairs.begin(), pairs.end());
  return {};
}

Status Maker::gatherHoles(std::vector<Holes>* all) const {
  return gather(setup_, {}, holesOf(fabric_, setup_.rank, wiring_), all);
}

void Maker::describeWiring() const {
  logInfo(lineOf(fabric_, setup_.rank, wiring_));
  const std::string mismatches = mtuMismatches(fabric_, setup_.rank, wiring_);
  if (!mismatches.empty())
    logWarn("verbs: ", mismatches, "; the smaller one is used; fix: the same MTU at both ends");
}

// A rank whose network does not allow it hears nobody; the missing edges then say enough.
Status Maker::gatherHello(int ms, AllHeard* all) {
  std::vector<Heard> mine;
  if (const Status status = sayHello(ports_, setup_.rank, job_, ms, &mine); !status.ok())
    logWarn(status.text());
  WEFT_TRY(gatherLists(setup_, {}, mine, all));
  tidy(fabric_, all);
  return {};
}

Status Maker::addDomains() {
  std::map<std::shared_ptr<Device>, std::uint32_t> edges;
  for (const Edge& edge : wiring_) ++edges[ports_[portOf(edge)].device];
  for (const auto& [device, count] : edges) {
    std::unique_ptr<Domain> domain;
    WEFT_TRY(Domain::open(device, setup_.regions, edges.size(), &domain));
    domain->plan(count * Connection::completions(setup_.completionsPerPeer));
    domains_[device.get()] = &wire_->add(std::move(domain));
  }
  return {};
}

Status Maker::addMailboxes() {
  std::map<std::uint32_t, std::size_t> edges;
  for (const Edge& edge : wiring_) ++edges[portOf(edge)];
  for (const auto& [port, count] : edges) {
    std::unique_ptr<Mailbox> mailbox;
    WEFT_TRY(Mailbox::open(*domains_[ports_[port].device.get()], ports_[port], {setup_.rank, port},
                           count, &mailbox));
    mailboxes_[port] = &wire_->add(std::move(mailbox));
  }
  return {};
}

// Of each port, not of each edge: connections are made when they are needed.
Status Maker::exchangeOffers() {
  Status opened = addDomains();
  if (opened.ok()) opened = addMailboxes();
  std::vector<PortOffer> mine(ports_.size());
  for (const auto& [port, mailbox] : mailboxes_)
    mine[port] = {mailbox->domain().memory().regions(), mailbox->address()};
  return gatherLists(setup_, opened, mine, &offers_);
}

// Both ends of an edge find the same, unless that peer runs another weft.
Status Maker::setWays() {
  std::vector<Way> ways;
  for (const Edge& edge : wiring_) {
    const std::uint32_t peer = edge.peerOf(setup_.rank), port = portOf(edge), far = farPortOf(edge);
    if (far >= offers_[peer].size() || offers_[peer][far].mailbox.number == 0)
      return Status::error(Code::Mismatch, "verbs: ", setup_.names[peer], " offers nothing to ",
                           fabric_.nameOf(setup_.rank, port),
                           "; fix: the same libweft on all ranks");
    ways.push_back({.peer = peer,
                    .farPort = far,
                    .linkLocal = edge.linkLocal,
                    .mailbox = mailboxes_[port],
                    .far = fabric_.ports[peer][far],
                    .offer = offers_[peer][far]});
  }
  std::size_t ports = 0;
  for (const auto& theirs : offers_) ports = std::max(ports, theirs.size());
  wire_->setWays(std::move(ways), ports);
  return {};
}

// In rounds, after each of which all know whether any is silent: who has heard all its peers may
// have answered one of them in vain, which then needs it in the next round. All take part, so who
// does not answer for as long as that cannot.
Status Maker::tryEdges() {
  int left = std::min(setup_.timeoutMs / 4 * 3, kMostSilenceMs);
  for (int round = 0;; ++round) {
    const int ms = std::min(kFirstRoundMs << round, left);
    left -= ms;
    const std::uint32_t silent = wire_->ping(Deadline::in(ms), round != 0);
    Status mine;
    if (wire_->isAnyDown())
      mine = wire_->silence(Code::SystemError);
    else if (left == 0)
      mine = wire_->silence(Code::Timeout);
    std::vector<std::uint32_t> all;
    WEFT_TRY(gather(setup_, mine, silent, &all));
    if (left == 0 || std::ranges::count(all, 0u) == setup_.ranks) return {};
  }
}

// Where an edge fails, hello tells whether its cable leads to somebody else.
Status Maker::verify() {
  const Status all = tryEdges();
  if (all.ok()) return {};
  AllHeard heard;
  WEFT_TRY(gatherHello(kHelloMs, &heard));
  const std::string mine = crossings(fabric_, setup_.rank, wiring_, heard);
  std::vector<std::vector<char>> words;
  WEFT_TRY(gatherLists(setup_, {}, std::vector<char>(mine.begin(), mine.end()), &words));
  std::erase_if(words, [](const auto& theirs) { return theirs.empty(); });
  if (words.empty()) {
    WEFT_TRY(tellUncabled(wire_->silentPeers()));
    return all;
  }
  ErrorData data = all.data();
  data.what += "; " + joined(words, ", ", [](const auto& theirs) {
                 return std::string(theirs.begin(), theirs.end());
               });
  data.fix = "the cables, or addresses or WEFT_MESH_FILE that match them";
  return Status::error(std::move(data));
}

}  // namespace

Status makeVerbsWire(const WireSetup& setup, std::unique_ptr<Wire>* out) {
  return Maker(setup).make(out);
}

}  // namespace weft::verbs
