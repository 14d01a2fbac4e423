// SPDX-License-Identifier: Apache-2.0
#include "comm/create.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/deadline.h"
#include "base/environment.h"
#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/cables.h"
#include "comm/hire_team.h"
#include "comm/layout.h"
#include "comm/open_transport.h"
#include "comm/tuning_knobs.h"
#include "control/control_link.h"
#include "formats/read.h"
#include "plan/arrivals.h"
#include "topology/cores.h"
#include "topology/fabric_file.h"
#include "topology/host.h"
#include "topology/numa.h"
#include "transports/gather.h"
#include "tune/this_machine.h"

namespace weft::comm {
namespace {

// What one rank tells the others. The calibration is rank 0's: one measures, and all count with the
// same numbers.
struct Offer {
  cpu_set_t cores;
  std::uint64_t direct, polls, threads, maxPut;
  double shareNs, wakeNs;  // of the threads
  std::int64_t node;       // NUMA, of the cores
  tune::KnownMachine known;
};

Status offerOf(const transport::Transport& transport, Core::Basis* mine, Offer* offer) {
  const cpu_set_t cores = topology::allowedCores();
  WEFT_TRY(hireTeam(cores, &mine->config));
  const std::shared_ptr<engine::Team>& team = mine->config.team;
  const engine::Team::Costs costs = team ? team->costs() : engine::Team::Costs();
  *offer = {cores,
            transport.caps().direct,
            transport.caps().polls,
            static_cast<std::uint64_t>(mine->config.threads),
            transport.caps().maxPut,
            costs.awakeNs,
            costs.asleepNs,
            topology::numaNodeOf(cores),
            {}};
  if (mine->rank != 0) return {};
  WEFT_TRY(ofVariable("WEFT_TUNE_FILE", tune::thisMachine(&offer->known)));
  if (!tune::isSane(tune::estimated(offer->known.calibration.machine())))
    return Status::error(Code::OutOfMemory,
                         "no memory to calibrate this machine; fix: raise the limit of memory "
                         "(ulimit -v, cgroup)");
  return {};
}

// How many cores the ranks of one host have together.
std::uint32_t coresOf(const std::vector<Offer>& offers, const std::vector<std::uint32_t>& hosts,
                      std::uint32_t host) {
  cpu_set_t together;
  CPU_ZERO(&together);
  for (std::size_t r = 0; r < offers.size(); ++r)
    if (hosts[r] == host) CPU_OR(&together, &together, &offers[r].cores);
  return topology::usableCores(together);
}

// By rank: its part of its host's, by how many threads it has.
std::vector<std::uint32_t> coresByRank(const std::vector<Offer>& offers,
                                       const std::vector<std::uint32_t>& hosts,
                                       const std::vector<std::uint32_t>& coresByHost) {
  std::vector<std::uint64_t> threads(coresByHost.size(), 0);
  for (std::size_t r = 0; r < offers.size(); ++r) threads[hosts[r]] += offers[r].threads;
  std::vector<std::uint32_t> cores;
  for (std::size_t r = 0; r < offers.size(); ++r) {
    const std::uint64_t part = coresByHost[hosts[r]] * offers[r].threads / threads[hosts[r]];
    cores.push_back(static_cast<std::uint32_t>(std::max<std::uint64_t>(1, part)));
  }
  return cores;
}

plan::TeamCosts teamCostsOf(const std::vector<Offer>& offers,
                            const std::vector<std::uint32_t>& cores) {
  plan::TeamCosts costs{.threads = cores[0]};
  for (std::size_t r = 0; r < offers.size(); ++r) {
    const auto threads = static_cast<std::uint32_t>(offers[r].threads);
    costs.threads = std::min({costs.threads, cores[r], threads});
    costs.shareNs = std::max(costs.shareNs, offers[r].shareNs);
    costs.wakeNs = std::max(costs.wakeNs, offers[r].wakeNs);
  }
  return costs;
}

// Which ranks are far from each other. On one host the two levels are its NUMA nodes, if those need no
// more arrival slots than there are.
void settleNodes(const transport::WindowLayout& layout, const std::vector<std::uint32_t>& hosts,
                 const std::vector<Offer>& offers, plan::Tuning* tuning) {
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> nodes;  // by host: numbered anew
  plan::Tuning made = *tuning;
  for (std::size_t r = 0; r < offers.size(); ++r) {
    made.costs.memoryNodes.push_back(static_cast<std::int32_t>(offers[r].node));
    const auto next = static_cast<std::uint32_t>(nodes.size());
    made.nodes[r] = nodes.emplace(std::pair(hosts[r], offers[r].node), next).first->second;
  }
  const bool known = std::ranges::none_of(offers, [](const Offer& o) { return o.node < 0; });
  const std::uint32_t hostCount = *std::ranges::max_element(hosts) + 1;
  if (nodes.size() <= hostCount) return;  // none is far
  tuning->costs.memoryNodes = made.costs.memoryNodes;
  if (known && isOneHost(hosts) && plan::arrivalsPerPeer(made) <= layout.regions().perPeer)
    tuning->nodes = std::move(made.nodes);
}

// What follows from all offers: direct puts only if all ranks can (a rank that cannot is known to all
// before the first call), rings where all share memory (wires keep no receives for so many), how
// many cores they have together, and the machine.
Status settle(const transport::TransportSetup& setup, const std::vector<std::uint32_t>& hosts,
              const std::vector<Offer>& offers, Core::Parts* parts) {
  const tune::KnownMachine& known = offers[0].known;
  const tune::Machine machine = tune::estimated(known.calibration.machine());
  if (!tune::isSane(machine))
    return Status::error(Code::InternalError, "rank 0 told no calibration of its host");
  parts->calibrated = known;
  parts->tuning.direct =
      std::ranges::all_of(offers, [](const Offer& offer) { return offer.direct != 0; });
  const bool polled = std::ranges::any_of(offers, [](const Offer& o) { return o.polls != 0; });
  parts->target.ring = polled ? 0 : setup.layout.ring;
  parts->target.maxPut = std::ranges::min_element(offers, {}, &Offer::maxPut)->maxPut;
  std::vector<std::uint32_t> ofHosts;
  for (std::uint32_t h = 0; h <= *std::ranges::max_element(hosts); ++h)
    ofHosts.push_back(coresOf(offers, hosts, h));
  const std::vector<std::uint32_t> ofRanks = coresByRank(offers, hosts, ofHosts);
  parts->coresHere = ofHosts[hosts[setup.rank]];
  parts->crew = {parts->config.team, ofRanks[setup.rank], 1 / machine.copy.near()};
  parts->tuning.costs = {.machine = machine,
                         .cores = std::accumulate(ofHosts.begin(), ofHosts.end(), 0u),
                         .team = teamCostsOf(offers, ofRanks),
                         .oneProcess = parts->transport->caps().sharesAll,
                         .arenaBytes = setup.layout.arenaBytes,
                         .between = {}};
  settleNodes(setup.layout, hosts, offers, &parts->tuning);
  return {};
}

Status agree(const transport::TransportSetup& setup, const std::vector<std::uint32_t>& hosts,
             Core::Parts* parts) {
  Offer mine;
  const Status offered = offerOf(*parts->transport, parts, &mine);
  std::vector<Offer> offers;
  WEFT_TRY(transport::gather(setup, offered, mine, &offers));
  WEFT_TRY(settle(setup, hosts, offers, parts));
  tune::rememberMachine(parts->calibrated);
  return {};
}

// What the model knows of the links between hosts: WEFT_TOPO_FILE's rails, of rank 0.
Status agreeOnLinks(const transport::TransportSetup& setup, const std::vector<std::uint32_t>& hosts,
                    Core::Parts* parts) {
  if (isOneHost(hosts)) return {};
  struct Speed {
    double latencyNs = plan::Between().latencyNs;
    double bytesPerNs = plan::Between().bytesPerNs;
    double rankBytesPerNs = 0;
  } mine;
  std::optional<topology::Fabric> fabric;
  WEFT_TRY(topology::fabricFromKnob(&fabric));
  if (fabric) {
    std::vector<std::uint32_t> sizes(*std::ranges::max_element(hosts) + 1, 0);
    for (const std::uint32_t host : hosts) ++sizes[host];
    WEFT_TRY(topology::checkFabricFits(*fabric, sizes));
    if (const auto rail = fabric->outside(0)) mine.latencyNs = rail->us * 1e3;
    if (fabric->railGbit() > 0) mine.bytesPerNs = fabric->railGbit() / 8;
    mine.rankBytesPerNs = fabric->railGbitOf(0) / 8;
  }
  std::vector<Speed> all;
  WEFT_TRY(transport::gather(setup, {}, mine, &all));
  parts->tuning.costs.between = plan::Between{.nodes = hosts,
                                              .latencyNs = all[0].latencyNs,
                                              .bytesPerNs = all[0].bytesPerNs,
                                              .rankBytesPerNs = all[0].rankBytesPerNs};
  return {};
}

// Where some ranks share no memory with others, all learn of each other over a control link: their
// parent's, if it has one for them.
Status openRemoteRanks(const transport::TransportSetup& setup, control::LinkBranch* link,
                       Core::Parts* parts) {
  transport::Transport& transport = *parts->transport;
  if (!transport.caps().mirrors) return {};
  if (link == nullptr) return control::openControlLink(setup, transport, &parts->remoteRanks);
  return link->open(setup, transport, &parts->remoteRanks);
}

void announce(const Core::Parts& parts) {
  logInfo("communicator ", parts.config.name, ": rank ", parts.rank, " of ", parts.ranks,
          ", transport ", parts.transport->name(), parts.tuning.direct ? " with direct puts" : "",
          ", ", parts.transport->layout().size() >> 10, " KiB shared, ", parts.tuning.costs.cores,
          " cores, ", parts.config.threads, " thread(s) a rank");
}

Status setupOf(const Core::Basis& basis, const transport::Exchange& exchange, Deadline deadline,
               transport::TransportSetup* setup) {
  std::string cma;
  WEFT_TRY(readText(Knob::Cma, &cma));
  setup->rank = basis.rank;
  setup->ranks = basis.ranks;
  setup->names = basis.names;
  WEFT_TRY(layoutFor(basis.tuning, isOneHost(hostsOf(basis.names)), &setup->layout));
  setup->layout.epochsBefore = basis.config.epochsBefore;
  setup->exchange = exchange;
  setup->allowDirect = cma != "off";
  setup->timeoutMs = deadline.pollTimeoutMs();
  setup->node = topology::numaNodeOf(topology::allowedCores());
  setup->distanceOf = [](const std::string& busId) { return topology::distanceOf(busId); };
  return {};
}

void warnOfWaysAround(const Core::Basis& basis, const std::vector<RankPair>& pairs,
                      const Status& why) {
  if (basis.rank != 0) return;
  std::string ways;
  for (const RankPair& pair : pairs)
    ways += text(basis.names[pair.first], " and ", basis.names[pair.second], ": ",
                 carrierOf(basis.names, basis.selection, pair), "; ");
  logWarn("communicator ", basis.config.name, " goes around a cable that is missing or dead; ",
          ways, why.text());
}

// Opens the transport; pairs of a mesh whose cable is missing take another way, as those that lose
// it later do (comm/recover.h).
Status openAround(const transport::Exchange& exchange, Deadline deadline,
                  transport::TransportSetup* setup, Core::Parts* parts) {
  for (;;) {
    settleTrees(*parts, &parts->tuning);
    WEFT_TRY(setupOf(*parts, exchange, deadline, setup));
    std::vector<RankPair> uncabled;
    setup->uncabled = &uncabled;
    const Status opened = openTransport(*setup, &parts->selection, &parts->transport);
    setup->uncabled = nullptr;
    if (opened.ok() || !goAround(parts->names, uncabled, &parts->selection)) return opened;
    warnOfWaysAround(*parts, uncabled, opened);
  }
}

// What one rank may send to another in one invocation is a put at most.
Status limitStaging(const transport::TransportSetup& setup, Core::Parts* parts) {
  plan::CostParameters& costs = parts->tuning.costs;
  std::int64_t stagingKb = 0;
  const std::int64_t most = static_cast<std::int64_t>(setup.layout.arenaBytes >> 10);
  WEFT_TRY(readInteger(Knob::SegmentKb, &stagingKb));
  const bool isAuto = stagingKb == kKnobAuto;
  if (isAuto) stagingKb = costs.hasLinks() ? most : stagingKbInHost(costs.machine);
  costs.stagingBytes = static_cast<std::uint64_t>(stagingKb) << 10;
  costs.longStagingBytes = isAuto && !costs.hasLinks() ? 2 * costs.stagingBytes : 0;
  const std::size_t maxPut = parts->target.maxPut;
  if (maxPut < setup.layout.arenaBytes / setup.ranks) costs.arenaBytes = maxPut * setup.ranks;
  plan::BindTarget target = targetFor(parts->tuning, setup.layout);
  target.rank = setup.rank;
  target.ring = parts->target.ring;
  target.maxPut = maxPut;
  parts->target = target;
  return {};
}

// This rank's place among the ranks of its host, and how it waits.
Status settleOnHost(const std::vector<std::uint32_t>& hosts, std::uint32_t rank,
                    Core::Parts* parts) {
  const auto mine = std::ranges::count(hosts, hosts[rank]);
  const auto before = std::count(hosts.begin(), hosts.begin() + rank, hosts[rank]);
  parts->localRank = static_cast<std::uint32_t>(before);
  parts->localRanks = static_cast<std::uint32_t>(mine);
  std::int64_t spinUs = 0, lanes = 0;
  WEFT_TRY(numberKnob(Knob::SpinUs, -1, &spinUs));
  WEFT_TRY(numberKnob(Knob::Lanes, transport::kMaxLanes, &lanes));
  parts->lanes = static_cast<std::uint32_t>(lanes);
  parts->waiting = engine::tuneWaiting(static_cast<std::uint32_t>(mine), parts->coresHere, spinUs);
  parts->waiting.meanwhile = parts->config.meanwhile;
  parts->waiting.uninterrupted *= static_cast<std::uint64_t>(parts->config.threads);
  return {};
}

// What each rank can tell by itself, once all agree.
Status finishParts(const transport::TransportSetup& setup, const std::vector<std::uint32_t>& hosts,
                   Core::Parts* parts) {
  WEFT_TRY(limitStaging(setup, parts));
  WEFT_TRY(settleOnHost(hosts, parts->rank, parts));
  parts->tuning.shares = parts->transport->caps().shares;
  parts->tuning.sharesAll = parts->transport->caps().sharesAll;
  parts->tuning.maps = parts->transport->caps().maps && setup.layout.publishes != 0;
  return {};
}

Status basisOf(std::uint32_t rank, const std::vector<PeerName>& names, const CommConfig& config,
               Core::Basis* basis) {
  basis->rank = rank;
  basis->ranks = static_cast<std::uint32_t>(names.size());
  basis->config = config;
  basis->names = names;
  basis->selection.wanted = config.transport;
  return readTuning(hostsOf(names), &basis->tuning);
}

std::vector<PeerName> namesOf(const Parent& parent) {
  std::vector<PeerName> names;
  for (const std::uint32_t member : parent.members) {
    names.push_back(parent.parts.names[member]);
    names.back().rank = static_cast<int>(names.size() - 1);
  }
  return names;
}

}  // namespace

std::string semanticConfig(const CommConfig& config) {
  std::string line =
      text("transport=", config.transport, ";reproducible=", config.reproducible ? 1 : 0);
  for (const Knob knob : {Knob::Algo, Knob::SegmentKb, Knob::OneShotMax, Knob::DirectMin})
    line += text(";", knobInfo(knob).name, "=", environment(knobInfo(knob).name));
  if (const std::string file = scheduleFile(); !file.empty())
    line += text(";schedule=", formats::fingerprintOfFile(file));
  return line;
}

Status buildParts(Core::Basis basis, const transport::Exchange& exchange, Deadline deadline,
                  Core::Parts* parts) {
  const SpeaksFor rank(basis.rank);
  static_cast<Core::Basis&>(*parts) = std::move(basis);
  const std::vector<std::uint32_t> hosts = hostsOf(parts->names);
  transport::TransportSetup setup;
  WEFT_TRY(openAround(exchange, deadline, &setup, parts));
  WEFT_TRY(agree(setup, hosts, parts));
  WEFT_TRY(agreeOnLinks(setup, hosts, parts));
  WEFT_TRY(timeCables(setup, deadline, parts));
  WEFT_TRY(finishParts(setup, hosts, parts));
  setup.timeoutMs = deadline.pollTimeoutMs();
  WEFT_TRY(openRemoteRanks(setup, nullptr, parts));
  announce(*parts);
  return {};
}

Status buildCommunicator(std::uint32_t rank, const std::vector<PeerName>& names,
                         const transport::Exchange& exchange, const CommConfig& config,
                         Deadline deadline, std::shared_ptr<Communicator>* out) {
  Core::Basis basis;
  WEFT_TRY(basisOf(rank, names, config, &basis));
  Core::Parts parts;
  WEFT_TRY(buildParts(std::move(basis), exchange, deadline, &parts));
  *out = std::make_shared<Communicator>(std::make_unique<Core>(std::move(parts)));
  return {};
}

Status branchCommunicator(const Parent& parent, std::uint32_t rank,
                          const transport::Exchange& exchange, const CommConfig& config,
                          Deadline deadline, std::shared_ptr<Communicator>* out) {
  const SpeaksFor speaker(rank);
  Core::Parts parts;
  WEFT_TRY(basisOf(rank, namesOf(parent), config, &parts));
  WEFT_TRY(hireTeam(topology::allowedCores(), &parts.config));
  parts.selection.between = parent.parts.selection.between;
  transport::TransportSetup setup;
  WEFT_TRY(setupOf(parts, exchange, deadline, &setup));
  WEFT_TRY(parent.parts.transport->branch(setup, parent.members, &parts.transport));
  if (!parts.transport) return {};
  const transport::Caps caps = parts.transport->caps();
  const plan::TeamCosts& team = parent.parts.tuning.costs.team;
  std::vector<Offer> offers;
  for (const cpu_set_t& cores : parent.cores)
    offers.push_back({cores,
                      caps.direct,
                      caps.polls,
                      static_cast<std::uint64_t>(config.threads),
                      parent.parts.target.maxPut,
                      team.shareNs,
                      team.wakeNs,
                      topology::numaNodeOf(cores),
                      {}});
  offers[0].known = parent.parts.calibrated;
  const std::vector<std::uint32_t> hosts = hostsOf(parts.names);
  WEFT_TRY(settle(setup, hosts, offers, &parts));
  parts.tuning.costs.between = parent.parts.tuning.costs.between;
  if (parts.tuning.costs.between) parts.tuning.costs.between->nodes = hosts;
  if (isOneHost(hosts)) parts.tuning.costs.between.reset();
  WEFT_TRY(finishParts(setup, hosts, &parts));
  setup.timeoutMs = deadline.pollTimeoutMs();
  WEFT_TRY(openRemoteRanks(setup, &parent.link, &parts));
  announce(parts);
  *out = std::make_shared<Communicator>(std::make_unique<Core>(std::move(parts)));
  return {};
}

}  // namespace weft::comm
