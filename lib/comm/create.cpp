// SPDX-License-Identifier: Apache-2.0
#include "comm/create.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "topology/cores.h"
#include "tune/this_machine.h"

namespace weft {
namespace {

// Landing memory of one parity. Four of them, and 256 KiB a peer for point to point, stay under the
// promised 8 MiB + 1 MiB a peer.
constexpr std::size_t kArenaBytes = std::size_t{1} << 20;
// The most cells that any algorithm of the registry needs, with its transforms, from one rank to
// another, times the ranks: a ring sends all of its 2n messages to one neighbour.
std::uint32_t tagsFor(std::uint32_t ranks) { return ranks * (4 * ranks + 16); }

SegmentLayout layoutFor(std::uint32_t ranks) {
  SegmentLayout layout;
  layout.ranks = ranks;
  layout.tags = tagsFor(ranks);
  layout.pairTags = ranks * Pairs::kCellsPerPeer;
  layout.arenaBytes = kArenaBytes;
  layout.pairBytes = ranks * Pairs::kPairSlots * Pairs::kSlotBytes;
  return layout;
}

bool allEqual(const std::vector<RankPlace>& members, auto field) {
  return std::ranges::all_of(members,
                             [&](const RankPlace& m) { return field(m) == field(members[0]); });
}

// Splits "faulty:SPEC", a decorator over whatever fits.
std::string baseTransport(const std::string& wanted, std::string* faults) {
  if (!wanted.starts_with("faulty")) return wanted;
  *faults = wanted.size() > 7 ? wanted.substr(7) : "seed=1";
  if (faults->find('=') == std::string::npos) *faults = "seed=" + *faults;
  return "auto";
}

Status openTransport(const TransportSetup& setup, const std::vector<RankPlace>& members,
                     const std::string& wanted, std::unique_ptr<Transport>* out) {
  std::string faults;
  const std::string base = baseTransport(wanted, &faults);
  const bool oneHost = allEqual(members, [](const RankPlace& m) { return m.hostId; });
  const bool oneProcess = oneHost && allEqual(members, [](const RankPlace& m) { return m.pid; });
  if (!oneHost) {
    const auto other = std::ranges::find_if(
        members, [&](const RankPlace& m) { return m.hostId != members[0].hostId; });
    return Status::error(Code::InvalidUsage,
                         text("no transport reaches rank ", other - members.begin(), " (host ",
                              other->host, ") from rank 0 (host ", members[0].host,
                              "): this weft connects ranks of one host and network namespace"));
  }
  if (base != "auto" && base != "local" && base != "shm")
    return Status::error(Code::InvalidArgument, text("unknown transport '", base,
                                                     "'; fix: auto, local, shm or faulty:SEED"));
  if (base == "local" && !oneProcess)
    return Status::error(
        Code::InvalidUsage,
        "transport 'local' is for ranks that are threads of one process; fix: use shm or auto");
  if (base == "local" || (base == "auto" && oneProcess))
    WEFT_TRY(makeLocal(setup, out));
  else
    WEFT_TRY(makeShm(setup, out));
  if (faults.empty()) return {};
  return makeFaulty(std::move(*out), faults, out);
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

Status readTuning(std::uint32_t ranks, Tuning* tuning) {
  WEFT_TRY(limitKnob(Knob::OneShotMax, &tuning->oneShotMax));
  WEFT_TRY(limitKnob(Knob::DirectMin, &tuning->directMin));
  WEFT_TRY(readText(Knob::Algo, &tuning->algorithm));
  if (tuning->algorithm == "auto") tuning->algorithm.clear();
  tuning->ranks = ranks;
  // On one host, two-level algorithms see pairs of ranks as nodes: of use for tests only.
  tuning->cards = ranks % 2 == 0 && ranks > 2 ? 2 : 1;
  return {};
}

// Of a segment: those in flight fit half of a core's cache.
std::int64_t landingKbFor(const Machine& machine) {
  constexpr double kMost = kArenaBytes, kLeast = kMost / 8;
  return std::llround(std::clamp(machine.cacheBytes / 2 / kParities, kLeast, kMost)) >> 10;
}

// What one rank tells the others of its host. The calibration is rank 0's: one measures, and all
// count with the same numbers.
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

// What the ranks of a host agree on: direct puts only if all ranks can (a rank that cannot is known
// to all before the first call), how many cores they have together to wait on, and the machine.
Status agreeOnHost(std::uint32_t rank, const Transport& transport, const Exchange& exchange,
                   Tuning* tuning, Origin* calibrated) {
  Offer mine;
  WEFT_TRY(offerOf(rank, transport, &mine));
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(exchange(std::as_bytes(std::span(&mine, 1)), &all));
  Offer together{mine};
  for (std::size_t r = 0; r < all.size(); ++r) {
    Offer offer{};
    if (all[r].size() == sizeof(offer)) std::memcpy(&offer, all[r].data(), sizeof(offer));
    together.direct &= offer.direct;
    CPU_OR(&together.cores, &together.cores, &offer.cores);
    if (r == 0) together.known = offer.known;
  }
  const Machine& machine = together.known.machine;
  if (!isSane(machine))
    return Status::error(Code::InternalError, "rank 0 told no calibration of this host");
  rememberMachine(machine);
  *calibrated = together.known.origin;
  tuning->direct = together.direct != 0;
  tuning->ground = {.machine = machine,
                    .cores = usableCores(together.cores),
                    .oneProcess = transport.caps().sharesAll,
                    .arenaBytes = kArenaBytes};
  return {};
}

void announce(const Communicator::Parts& parts) {
  logInfo("communicator ", parts.config.name, ": rank ", parts.rank, " of ", parts.ranks,
          ", transport ", parts.transport->name(), parts.tuning.direct ? " with direct puts" : "",
          ", ", parts.transport->layout().size() >> 10, " KiB shared, ", parts.tuning.ground.cores,
          " cores");
}

}  // namespace

std::string semanticConfig(const CommConfig& config) {
  std::string line =
      text("transport=", config.transport, ";reproducible=", config.reproducible ? 1 : 0);
  for (const Knob knob : {Knob::Algo, Knob::SegmentKb, Knob::OneShotMax, Knob::DirectMin}) {
    std::string value;
    if (const char* set = std::getenv(knobInfo(knob).name)) value = set;
    line += text(";", knobInfo(knob).name, "=", value);
  }
  return line;
}

Status buildCommunicator(std::uint32_t rank, const std::vector<RankPlace>& members,
                         const Exchange& exchange, const CommConfig& config,
                         std::shared_ptr<Communicator>* out) {
  const std::uint32_t ranks = static_cast<std::uint32_t>(members.size());
  Communicator::Parts parts;
  parts.rank = parts.localRank = rank;
  parts.ranks = ranks;
  parts.config = config;
  WEFT_TRY(readTuning(ranks, &parts.tuning));
  std::int64_t spinUs = 0;
  WEFT_TRY(numberKnob(Knob::SpinUs, -1, &spinUs));
  bool cma = true;
  std::string cmaKnob;
  WEFT_TRY(readText(Knob::Cma, &cmaKnob));
  cma = cmaKnob != "off";
  TransportSetup setup;
  setup.rank = rank;
  setup.ranks = ranks;
  setup.layout = layoutFor(ranks);
  setup.exchange = exchange;
  setup.allowDirect = cma;
  setup.timeoutMs = config.initTimeoutMs;
  WEFT_TRY(openTransport(setup, members, config.transport, &parts.transport));
  WEFT_TRY(agreeOnHost(rank, *parts.transport, exchange, &parts.tuning, &parts.calibrated));
  Ground& ground = parts.tuning.ground;
  std::int64_t landingKb = 0;
  WEFT_TRY(numberKnob(Knob::SegmentKb, landingKbFor(ground.machine), &landingKb));
  ground.landingBytes = static_cast<std::uint64_t>(landingKb) << 10;
  parts.tuning.shares = parts.transport->caps().shares;
  parts.tuning.sharesAll = parts.transport->caps().sharesAll;
  parts.waiting = tuneWaiting(ranks, ground.cores, spinUs);
  parts.target = {.rank = rank,
                  .ranks = ranks,
                  .tags = setup.layout.tags,
                  .budget = {setup.layout.arenaBytes, ground.landingBytes},
                  .streamMin = static_cast<std::uint64_t>(ground.machine.streamMin)};
  for (std::uint32_t r = 0; r < ranks; ++r)
    parts.names.push_back({static_cast<int>(r), members[r].host, members[r].pid});
  announce(parts);
  *out = std::make_shared<Communicator>(std::move(parts));
  return {};
}

}  // namespace weft
