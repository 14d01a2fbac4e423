// SPDX-License-Identifier: Apache-2.0
#include "comm/create.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "base/deadline.h"
#include "base/environment.h"
#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/open_transport.h"
#include "control/control_link.h"
#include "topology/cores.h"
#include "topology/fabric_file.h"
#include "topology/host.h"
#include "tune/this_machine.h"

namespace weft {
namespace {

// Landing memory of one parity. Four of them, and 256 KiB a peer for point to point, stay under the
// promised 8 MiB + 1 MiB a peer.
constexpr std::size_t kArenaBytes = std::size_t{1} << 20;
// Between hosts a message costs more than a cache miss: pieces are larger there.
constexpr std::size_t kArenaBytesOfPeer = std::size_t{192} << 10;
// The most cells that any algorithm of the registry needs, with its transforms, from one rank to
// another, times the ranks: a ring sends all of its 2n messages to one neighbour.
std::uint32_t tagsFor(std::uint32_t ranks) { return ranks * (4 * ranks + 16); }

SegmentLayout layoutFor(std::uint32_t ranks, bool oneHost) {
  SegmentLayout layout;
  layout.ranks = ranks;
  layout.tags = tagsFor(ranks);
  layout.pairTags = ranks * Pairs::kCellsPerPeer;
  layout.arenaBytes = kArenaBytes;
  if (!oneHost) layout.arenaBytes += (ranks - 1) * kArenaBytesOfPeer;
  layout.pairBytes = ranks * Pairs::kPairSlots * Pairs::kSlotBytes;
  return layout;
}

// A knob that is "auto" or not set takes `fallback`.
Status numberKnob(Knob knob, std::int64_t fallback, std::int64_t* value) {
  WEFT_TRY(readInteger(knob, value));
  if (*value == kKnobAuto) *value = fallback;
  return {};
}

// A limit that is set only where the knob is.
Status limitKnob(Knob knob, std::optional<std::uint64_t>* limit) {
  std::int64_t value = 0;
  WEFT_TRY(readInteger(knob, &value));
  if (value != kKnobAuto) *limit = static_cast<std::uint64_t>(value);
  return {};
}

Status readTuning(const std::vector<std::uint32_t>& hosts, Tuning* tuning) {
  WEFT_TRY(limitKnob(Knob::OneShotMax, &tuning->oneShotMax));
  WEFT_TRY(limitKnob(Knob::DirectMin, &tuning->directMin));
  WEFT_TRY(readText(Knob::Algo, &tuning->algorithm));
  if (tuning->algorithm == "auto") tuning->algorithm.clear();
  tuning->ranks = static_cast<std::uint32_t>(hosts.size());
  tuning->nodes = hosts;
  // On one host two-level algorithms see pairs of ranks as nodes: of use for tests only.
  for (std::uint32_t r = 0; isOneHost(hosts) && r < tuning->ranks; ++r) tuning->nodes[r] = r / 2;
  return {};
}

// Of a segment: those in flight fit half of a core's cache.
std::int64_t landingKbFor(const Machine& machine) {
  constexpr double kMost = kArenaBytes, kLeast = kMost / 8;
  return std::llround(std::clamp(machine.cacheBytes / 2 / kParities, kLeast, kMost)) >> 10;
}

// What one rank tells the others. The calibration is rank 0's: one measures, and all count with the
// same numbers.
struct Offer {
  cpu_set_t cores;
  std::uint64_t direct;
  KnownMachine known;
};

Status offerOf(std::uint32_t rank, const Transport& transport, Offer* offer) {
  *offer = {allowedCores(), transport.caps().direct, {}};
  if (rank != 0) return {};
  WEFT_TRY(thisMachine(&offer->known));
  if (!isSane(offer->known.machine))
    return Status::error(Code::OutOfMemory,
                         "no memory to calibrate this machine; fix: raise the limit of memory "
                         "(ulimit -v, cgroup)");
  return {};
}

Status gatherOffers(std::uint32_t rank, const Transport& transport, const Exchange& exchange,
                    std::vector<Offer>* offers) {
  Offer mine;
  WEFT_TRY(offerOf(rank, transport, &mine));
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(exchange(std::as_bytes(std::span(&mine, 1)), &all));
  for (std::size_t r = 0; r < all.size(); ++r) {
    Offer offer{};
    if (all[r].size() == sizeof(offer)) std::memcpy(&offer, all[r].data(), sizeof(offer));
    offers->push_back(offer);
  }
  return {};
}

// That the ranks of one host have together to wait on.
std::uint32_t coresOf(const std::vector<Offer>& offers, const std::vector<std::uint32_t>& hosts,
                      std::uint32_t host) {
  cpu_set_t together;
  CPU_ZERO(&together);
  for (std::size_t r = 0; r < offers.size(); ++r)
    if (hosts[r] == host) CPU_OR(&together, &together, &offers[r].cores);
  return usableCores(together);
}

// What all ranks agree on: direct puts only if all ranks can (a rank that cannot is known to all
// before the first call), how many cores they have together, and the machine.
Status agree(const TransportSetup& setup, const std::vector<std::uint32_t>& hosts,
             Core::Parts* parts) {
  const Transport& transport = *parts->transport;
  std::vector<Offer> offers;
  WEFT_TRY(gatherOffers(setup.rank, transport, setup.exchange, &offers));
  const Machine& machine = offers[0].known.machine;
  if (!isSane(machine))
    return Status::error(Code::InternalError, "rank 0 told no calibration of its host");
  rememberMachine(machine);
  parts->calibrated = offers[0].known.origin;
  parts->tuning.direct =
      std::ranges::all_of(offers, [](const Offer& offer) { return offer.direct != 0; });
  std::uint32_t cores = 0;
  for (std::uint32_t h = 0; h <= *std::ranges::max_element(hosts); ++h)
    cores += coresOf(offers, hosts, h);
  parts->coresHere = coresOf(offers, hosts, hosts[setup.rank]);
  parts->tuning.ground = {.machine = machine,
                          .cores = cores,
                          .oneProcess = transport.caps().sharesAll,
                          .arenaBytes = setup.layout.arenaBytes,
                          .between = {}};
  return {};
}

// Of links that no file describes. They only have to rank algorithms: what spares the links is
// right for all that are slower than memory.
constexpr double kLatencyNs = 20e3, kGbit = 25, kMessageNs = 1e3;

// What the model knows of the links between hosts: WEFT_TOPO_FILE's rails, of rank 0.
Status agreeOnLinks(const TransportSetup& setup, const std::vector<std::uint32_t>& hosts,
                    Core::Parts* parts) {
  if (isOneHost(hosts)) return {};
  Between between{{}, kLatencyNs, kGbit / 8, kMessageNs};
  std::optional<Fabric> fabric;
  WEFT_TRY(fabricFromKnob(&fabric));
  if (fabric) {
    std::vector<std::uint32_t> sizes(*std::ranges::max_element(hosts) + 1, 0);
    for (const std::uint32_t host : hosts) ++sizes[host];
    WEFT_TRY(checkFabricFits(*fabric, sizes));
    if (const auto rail = fabric->outside(0)) between.latencyNs = rail->us * 1e3;
    if (fabric->railGbit() > 0) between.bytesPerNs = fabric->railGbit() / 8;
  }
  const std::array<double, 2> mine{between.latencyNs, between.bytesPerNs};
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(setup.exchange(std::as_bytes(std::span(mine)), &all));
  if (all[0].size() != sizeof(mine))
    return Status::error(Code::InternalError, "rank 0 told no speed of links");
  std::memcpy(&between.latencyNs, all[0].data(), sizeof(double));
  std::memcpy(&between.bytesPerNs, all[0].data() + sizeof(double), sizeof(double));
  between.nodes = hosts;
  parts->tuning.ground.between = std::move(between);
  return {};
}

// Ranks that share no memory with others learn of them over a link of their own.
Status openFarRanks(const TransportSetup& setup, Core::Parts* parts) {
  ControlLinkSetup link;
  link.rank = setup.rank;
  link.ranks = setup.ranks;
  link.names = parts->names;
  link.exchange = setup.exchange;
  link.own = &parts->transport->own().control();
  link.deadline = Deadline::in(setup.timeoutMs);
  bool any = false;
  for (std::uint32_t r = 0; r < setup.ranks; ++r) {
    const bool far = parts->transport->isMirrored(r);
    link.mirrors.push_back(far ? parts->transport->control(r) : nullptr);
    any = any || far;
  }
  return any ? openControlLink(link, &parts->farRanks) : Status();
}

void announce(const Core::Parts& parts) {
  logInfo("communicator ", parts.config.name, ": rank ", parts.rank, " of ", parts.ranks,
          ", transport ", parts.transport->name(), parts.tuning.direct ? " with direct puts" : "",
          ", ", parts.transport->layout().size() >> 10, " KiB shared, ", parts.tuning.ground.cores,
          " cores");
}

}  // namespace

std::string semanticConfig(const CommConfig& config) {
  std::string line =
      text("transport=", config.transport, ";reproducible=", config.reproducible ? 1 : 0);
  for (const Knob knob : {Knob::Algo, Knob::SegmentKb, Knob::OneShotMax, Knob::DirectMin})
    line += text(";", knobInfo(knob).name, "=", environment(knobInfo(knob).name));
  return line;
}

namespace {

Status setupOf(std::uint32_t rank, const std::vector<RankPlace>& members, const Exchange& exchange,
               Deadline deadline, TransportSetup* setup) {
  std::string cma;
  WEFT_TRY(readText(Knob::Cma, &cma));
  setup->rank = rank;
  setup->ranks = static_cast<std::uint32_t>(members.size());
  setup->layout = layoutFor(setup->ranks, isOneHost(hostsOf(members)));
  setup->exchange = exchange;
  setup->allowDirect = cma != "off";
  setup->timeoutMs = deadline.pollTimeoutMs();
  setup->distanceOf = [](const std::string& busId) { return distanceOf(busId); };
  for (std::uint32_t r = 0; r < setup->ranks; ++r)
    setup->names.push_back(
        text("rank ", r, " (host ", members[r].host, ", pid ", members[r].pid, ")"));
  return {};
}

// What one rank may send to another in one invocation is a put at most.
Status limitLanding(const TransportSetup& setup, Core::Parts* parts) {
  Ground& ground = parts->tuning.ground;
  std::int64_t landingKb = 0;
  const std::int64_t most = static_cast<std::int64_t>(setup.layout.arenaBytes >> 10);
  WEFT_TRY(numberKnob(Knob::SegmentKb, ground.between ? most : landingKbFor(ground.machine),
                      &landingKb));
  ground.landingBytes = static_cast<std::uint64_t>(landingKb) << 10;
  const std::size_t maxPut = parts->transport->caps().maxPut;
  if (maxPut < setup.layout.arenaBytes / setup.ranks) ground.arenaBytes = maxPut * setup.ranks;
  parts->target = {.rank = setup.rank,
                   .ranks = setup.ranks,
                   .tags = setup.layout.tags,
                   .budget = {ground.arenaBytes, ground.landingBytes},
                   .streamMin = static_cast<std::uint64_t>(ground.machine.streamMin)};
  return {};
}

// Of this rank's host: where it stands among its ranks, and on what they wait.
Status settleOnHost(const std::vector<std::uint32_t>& hosts, std::uint32_t rank,
                    Core::Parts* parts) {
  const auto mine = std::ranges::count(hosts, hosts[rank]);
  const auto before = std::count(hosts.begin(), hosts.begin() + rank, hosts[rank]);
  parts->localRank = static_cast<std::uint32_t>(before);
  std::int64_t spinUs = 0, lanes = 0;
  WEFT_TRY(numberKnob(Knob::SpinUs, -1, &spinUs));
  WEFT_TRY(numberKnob(Knob::Lanes, kParities, &lanes));
  parts->lanes = static_cast<std::uint32_t>(lanes);
  parts->waiting = tuneWaiting(static_cast<std::uint32_t>(mine), parts->coresHere, spinUs);
  return {};
}

}  // namespace

Core::Parts successorOf(const Core::Parts& parts) {
  Core::Parts next;
  next.rank = parts.rank;
  next.ranks = parts.ranks;
  next.config = parts.config;
  next.members = parts.members;
  next.names = parts.names;
  next.carriage = parts.carriage;
  next.tuning = parts.tuning;
  return next;
}

Status buildParts(const Exchange& exchange, Deadline deadline, Core::Parts* parts) {
  const std::vector<std::uint32_t> hosts = hostsOf(parts->members);
  TransportSetup setup;
  WEFT_TRY(setupOf(parts->rank, parts->members, exchange, deadline, &setup));
  WEFT_TRY(openTransport(setup, parts->members, &parts->carriage, &parts->transport));
  WEFT_TRY(agree(setup, hosts, parts));
  WEFT_TRY(agreeOnLinks(setup, hosts, parts));
  WEFT_TRY(limitLanding(setup, parts));
  WEFT_TRY(settleOnHost(hosts, parts->rank, parts));
  parts->tuning.shares = parts->transport->caps().shares;
  parts->tuning.sharesAll = parts->transport->caps().sharesAll;
  WEFT_TRY(openFarRanks(setup, parts));
  announce(*parts);
  return {};
}

Status buildCommunicator(std::uint32_t rank, const std::vector<RankPlace>& members,
                         const Exchange& exchange, const CommConfig& config,
                         std::shared_ptr<Communicator>* out) {
  Core::Parts parts;
  parts.rank = rank;
  parts.ranks = static_cast<std::uint32_t>(members.size());
  parts.config = config;
  parts.members = members;
  parts.carriage.wanted = config.transport;
  for (std::uint32_t r = 0; r < parts.ranks; ++r)
    parts.names.push_back({static_cast<int>(r), members[r].host, members[r].pid});
  WEFT_TRY(readTuning(hostsOf(members), &parts.tuning));
  WEFT_TRY(buildParts(exchange, Deadline::in(config.initTimeoutMs), &parts));
  *out = std::make_shared<Communicator>(std::make_unique<Core>(std::move(parts)));
  return {};
}

}  // namespace weft
