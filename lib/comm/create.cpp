// SPDX-License-Identifier: Apache-2.0
#include "comm/create.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "topology/cores.h"

namespace weft {
namespace {

// Landing memory of one parity. Four of them, and 256 KiB a peer for point to point, stay under the
// promised 8 MiB + 1 MiB a peer.
constexpr std::size_t kArenaBytes = std::size_t{1} << 20;
// Of a segment: four in flight fit half of a common 2 MiB second-level cache.
constexpr std::int64_t kLandingBytes = 256 << 10;
// Cut-overs of today, measured with two ranks (docs/performance.md): up to here, divided by the
// ranks because each receives from all, everybody sends everything; from here on a block is worth a
// direct put.
constexpr std::int64_t kOneShotMax = 64 << 10;
constexpr std::int64_t kDirectMin = 32 << 10;
// Beyond this the kernel's copy is slower than two copies through landing slots that stay in cache.
constexpr std::uint64_t kDirectMax = 16 << 20;
// Shared buffers cost one exchange more than one shot.
constexpr std::uint64_t kSharedMin = 2 << 10;

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

Status readTuning(std::uint32_t ranks, Tuning* tuning) {
  std::int64_t oneShot = 0, direct = 0, landingKb = 0;
  WEFT_TRY(numberKnob(Knob::OneShotMax, kOneShotMax / ranks, &oneShot));
  WEFT_TRY(numberKnob(Knob::DirectMin, kDirectMin, &direct));
  WEFT_TRY(numberKnob(Knob::SegmentKb, kLandingBytes >> 10, &landingKb));
  WEFT_TRY(readText(Knob::Algo, &tuning->algorithm));
  if (tuning->algorithm == "auto") tuning->algorithm.clear();
  tuning->ranks = ranks;
  // Everybody sends everything: the arena must hold a whole message from each.
  tuning->oneShotMax =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(oneShot), kArenaBytes / (ranks + 1));
  tuning->directMin = static_cast<std::uint64_t>(direct);
  tuning->directMax = kDirectMax;
  tuning->sharedMin = kSharedMin;
  tuning->landingBytes = static_cast<std::uint64_t>(landingKb) << 10;
  // On one host, two-level algorithms see pairs of ranks as nodes: of use for tests only.
  tuning->cards = ranks % 2 == 0 && ranks > 2 ? 2 : 1;
  return {};
}

// What the ranks of a host agree on: direct puts only if all ranks can (a rank that cannot is known
// to all before the first call), and how many cores they have together to wait on.
Status agreeOnHost(const Transport& transport, const Exchange& exchange, bool* direct,
                   std::uint32_t* cores) {
  struct Offer {
    cpu_set_t cores;
    std::uint64_t direct;
  };
  const Offer mine{allowedCores(), transport.caps().direct};
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(exchange(std::as_bytes(std::span(&mine, 1)), &all));
  Offer together{mine};
  for (const std::vector<std::byte>& one : all) {
    Offer offer{};
    if (one.size() == sizeof(offer)) std::memcpy(&offer, one.data(), sizeof(offer));
    together.direct &= offer.direct;
    CPU_OR(&together.cores, &together.cores, &offer.cores);
  }
  *direct = together.direct != 0;
  *cores = usableCores(together.cores);
  return {};
}

void announce(const Communicator::Parts& parts, std::uint32_t cores) {
  logInfo("communicator ", parts.config.name, ": rank ", parts.rank, " of ", parts.ranks,
          ", transport ", parts.transport->name(), parts.tuning.direct ? " with direct puts" : "",
          ", ", parts.transport->layout().size() >> 10, " KiB shared, ", cores, " cores");
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
  std::uint32_t cores = 1;
  WEFT_TRY(agreeOnHost(*parts.transport, exchange, &parts.tuning.direct, &cores));
  parts.tuning.shares = parts.transport->caps().shares;
  parts.tuning.sharesAll = parts.transport->caps().sharesAll;
  parts.waiting = tuneWaiting(ranks, cores, spinUs);
  parts.target = {.rank = rank,
                  .ranks = ranks,
                  .tags = setup.layout.tags,
                  .budget = {setup.layout.arenaBytes, parts.tuning.landingBytes}};
  for (std::uint32_t r = 0; r < ranks; ++r)
    parts.names.push_back({static_cast<int>(r), members[r].host, members[r].pid});
  announce(parts, cores);
  *out = std::make_shared<Communicator>(std::move(parts));
  return {};
}

}  // namespace weft
