// SPDX-License-Identifier: Apache-2.0
// From WireSetup to a wire: the devices, the rails, the peers' addresses.
#include <algorithm>

#include "base/hash.h"
#include "base/knobs.h"
#include "base/log.h"
#include "base/text.h"
#include "transports/ofi/ofi.h"
#include "transports/ofi/ofi_wire.h"
#include "transports/setup.h"

namespace weft::ofi {
namespace {

constexpr const char* kPreferred = "efa";
constexpr const char* kAnywhere = "tcp;ofi_rxm";
constexpr std::size_t kMaxWrites = 4096;
// A queue that is full grows, or holds back who writes (FI_RM_ENABLED).
constexpr std::size_t kMaxCompletions = 16384;

// What this rank found, by itself.
struct Findings {
  const Library* library = nullptr;
  std::string provider, mode, devices;  // the knobs
  std::vector<Candidate> preferred;     // empty if a provider was asked for by name
  std::vector<Candidate> others;
  std::string why;  // of what was left out
};

Status lookAround(const WireSetup& setup, Findings* found) {
  WEFT_TRY(readText(Knob::OfiProvider, &found->provider));
  WEFT_TRY(readText(Knob::OfiMode, &found->mode));
  WEFT_TRY(readText(Knob::NetDevices, &found->devices));
  WEFT_TRY(openLibrary(&found->library));
  DeviceFilter filter;
  WEFT_TRY(DeviceFilter::parse(found->devices, &filter));
  const bool automatic = found->provider == "auto";
  const std::string provider = automatic ? kAnywhere : found->provider;
  if (provider == kAnywhere) setDefaults(found->mode == "msg");
  if (automatic)
    found->preferred =
        listCandidates(*found->library, kPreferred, filter, setup.distanceOf, &found->why);
  found->others = listCandidates(*found->library, provider, filter, setup.distanceOf, &found->why);
  return {};
}

Offering offeringOf(const Findings& found) {
  Offering offering = describeHost(Hash().add(found.provider).add(found.mode).value());
  offering.takesPart = 1;
  offering.special = !found.preferred.empty();
  offering.named = !found.devices.empty();
  addWays(found.others, &offering);
  return offering;
}

Status checkKnobs(const WireSetup& setup, const std::vector<Offering>& offerings) {
  std::size_t first = offerings.size();
  for (std::size_t rank = 0; rank < offerings.size(); ++rank) {
    if (offerings[rank].takesPart == 0) continue;
    first = std::min(first, rank);
    if (offerings[rank].asked != offerings[first].asked)
      return Status::error(
          Code::Mismatch, "ofi: ", setup.names[first], " and ", setup.names[rank],
          " differ in WEFT_OFI_PROVIDER or WEFT_OFI_MODE; fix: the same values on all ranks");
  }
  return {};
}

// The same on all ranks. That all use the lesser provider is logged.
bool allPrefer(const WireSetup& setup, const std::vector<Offering>& offerings) {
  std::string without;
  bool any = false;
  for (std::size_t rank = 0; rank < offerings.size(); ++rank) {
    if (offerings[rank].takesPart == 0) continue;
    any |= offerings[rank].special != 0;
    if (offerings[rank].special == 0 && without.empty()) without = describe(setup.names[rank]);
  }
  if (any && !without.empty() && setup.rank == 0)
    logWarn("ofi: ", without, " has no ", kPreferred, " device, others do; all use ", kAnywhere);
  return any && without.empty();
}

Status chooseDevices(const WireSetup& setup, const Findings& found,
                     const std::vector<Offering>& offerings, std::vector<Candidate>* chosen) {
  const bool preferred = allPrefer(setup, offerings);
  const std::vector<Candidate>& own = preferred ? found.preferred : found.others;
  std::string why = found.why;
  if (!own.empty())
    *chosen =
        own.front().ip ? chooseIp(own, offerings, &why) : chooseNics(own, setup.rank, offerings);
  for (const Candidate& used : *chosen)
    logInfo("ofi: using ", used.info->fabric_attr->prov_name, " on ", used.device, " ",
            used.address);
  if (!why.empty()) logDebug("ofi: left out:", why);
  if (!chosen->empty()) return {};
  const std::string& asked = found.provider;
  return Status::error(Code::SystemError, "ofi: no device for provider ",
                       asked == "auto" ? kAnywhere : asked, ";", why,
                       " fix: check WEFT_NET_DEVICES and WEFT_OFI_PROVIDER against fi_info");
}

// ofi_rxm connects no two whose buffers differ, and tries for ever.
Status checkBuffers(const WireSetup& setup, const std::vector<Offer>& offers) {
  std::size_t first = offers.size();
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].rails == 0) continue;
    first = std::min(first, rank);
    if (offers[rank].messageBytes != offers[first].messageBytes)
      return Status::error(Code::Mismatch, "ofi: ", setup.names[first], " takes messages of ",
                           offers[first].messageBytes, " bytes, ", setup.names[rank], " of ",
                           offers[rank].messageBytes,
                           "; fix: the same FI_OFI_RXM_BUFFER_SIZE and libfabric on all ranks, and "
                           "set before anything else uses libfabric");
  }
  return {};
}

Status chooseMode(const std::string& knob, const std::vector<Offer>& offers, Mode* mode) {
  const auto all = [&](auto says) {
    return std::ranges::all_of(offers,
                               [&](const Offer& offer) { return offer.rails == 0 || says(offer); });
  };
  const bool native = all([](const Offer& offer) { return offer.native != 0; });
  *mode = knob == "rdma" || (knob == "auto" && native) ? Mode::Rdma : Mode::Msg;
  if (*mode == Mode::Rdma && !all([](const Offer& offer) { return offer.dataBytes >= 4; }))
    return Status::error(Code::SystemError,
                         "ofi: mode rdma needs 32 bits of data with a write, and this provider has "
                         "fewer; fix: WEFT_OFI_MODE=msg");
  if (*mode == Mode::Rdma && !native)
    logInfo("ofi: mode rdma as asked, although the provider makes remote writes out of messages");
  return {};
}

}  // namespace

Status OfiWire::open(const std::vector<Candidate>& devices) {
  const auto peers = static_cast<std::size_t>(std::ranges::count(wanted_, true));
  RailSpec spec;
  spec.regions = areas_[0]->regions();
  spec.completions =
      std::min(kMaxWrites + kMostReceives + peers * remoteCompletions_, kMaxCompletions);
  for (const Candidate& device : devices) {
    std::unique_ptr<Rail> rail;
    WEFT_TRY(Rail::open(*library_, device, spec, &rail));
    rails_.push_back(std::move(rail));
  }
  return {};
}

Offer OfiWire::offer() const {
  Offer made;
  made.rails = static_cast<std::uint32_t>(rails_.size());
  made.native = 1;
  made.dataBytes = 8;
  made.messageBytes = rails_.empty() ? 0 : ~std::uint64_t{0};
  for (std::size_t i = 0; i < kWireRegions; ++i)
    made.regionBytes[i] = areas_[0]->regions()[i].size();
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    made.native &= rails_[i]->writesNatively();
    made.dataBytes = std::min<std::uint64_t>(made.dataBytes, rails_[i]->dataBytes());
    made.messageBytes = std::min<std::uint64_t>(made.messageBytes, rails_[i]->maxMessage());
    made.rail[i] = rails_[i]->contact();
  }
  return made;
}

Status OfiWire::join(const std::vector<Offer>& offers, Mode mode) {
  mode_ = mode;
  for (const Offer& offer : offers) narrow_ |= offer.rails != 0 && offer.dataBytes < 8;
  maxWrite_ = ~std::size_t{0};
  for (const auto& rail : rails_)
    maxWrite_ = std::min(maxWrite_, mode == Mode::Rdma ? rail->maxWrite() : rail->maxMessage());
  std::size_t peers = 0;
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank)
    if (wanted_[rank] && rank != rank_) {
      WEFT_TRY(meet(rank, offers[rank]));
      ++peers;
    }
  for (const auto& rail : rails_) {
    if (mode == Mode::Msg) WEFT_TRY(rail->refuseWrites());
    const std::size_t most = std::min(rail->info().tx_attr->size, kMaxWrites);
    const std::size_t receives =
        mode == Mode::Msg ? std::min(rail->info().rx_attr->size, kMostReceives) : 0;
    WEFT_TRY(rail->prepare(std::clamp<std::size_t>(peers * remoteCompletions_, 1, most), receives,
                           sizeof(Header) + rail->maxMessage()));
  }
  return {};
}

Status OfiWire::meet(std::uint32_t rank, const Offer& theirs) {
  Peer& peer = peers_[rank];
  if (theirs.rails == 0)
    return Status::error(Code::Mismatch, "ofi: ", names_[rank_], " is to reach ", names_[rank],
                         ", which takes no part in this wire");
  peer.rails = std::min(theirs.rails, static_cast<std::uint32_t>(rails_.size()));
  AreaContact first;
  std::ranges::copy(theirs.regionBytes, first.regionBytes);
  peer.where = text(rails_[0]->provider(), mode_ == Mode::Rdma ? " rdma" : " msg");
  for (std::uint32_t i = 0; i < peer.rails; ++i) {
    PeerRail& way = peer.rail[i];
    const Contact& contact = theirs.rail[i];
    WEFT_TRY(rails_[i]->insert(contact, &way.address));
    std::copy_n(contact.place, kWireRegions, first.place[i]);
    way.nowhere = contact.place[kNowhere];
    way.secret = contact.secret;
    senders_[i].emplace(way.address, rank);
    peer.where += text(", ", rails_[i]->device(), " ", rails_[i]->where(rails_[i]->contact()),
                       " -> ", rails_[i]->where(contact));
  }
  areas_[0]->learn(rank, first);
  return {};
}

namespace {

// The steps, each followed by an agreement, so that no rank waits for one that has failed, and none
// writes before all are ready.
Status setUp(const WireSetup& setup, std::unique_ptr<OfiWire>* wire) {
  const bool takesPart = std::ranges::count(setup.peers, true) != 0;
  Findings found;
  const Status looked = takesPart ? lookAround(setup, &found) : Status();
  std::vector<Offering> offerings;
  WEFT_TRY(
      gather(setup, looked, takesPart && looked.ok() ? offeringOf(found) : Offering{}, &offerings));
  WEFT_TRY(checkKnobs(setup, offerings));

  std::vector<Candidate> devices;
  Status opened = takesPart ? chooseDevices(setup, found, offerings, &devices) : Status();
  *wire = std::make_unique<OfiWire>(found.library, setup);
  if (opened.ok()) opened = (*wire)->open(devices);
  std::vector<Offer> offers;
  WEFT_TRY(gather(setup, opened, (*wire)->offer(), &offers));
  WEFT_TRY(checkBuffers(setup, offers));

  Mode mode = Mode::Rdma;
  Status joined = takesPart ? chooseMode(found.mode, offers, &mode) : Status();
  if (takesPart && joined.ok()) joined = (*wire)->join(offers, mode);
  return agree(setup, joined);
}

}  // namespace

Status makeOfiWire(const WireSetup& setup, std::unique_ptr<Wire>* out) {
  std::unique_ptr<OfiWire> wire;
  WEFT_TRY(setUp(setup, &wire));
  *out = std::move(wire);
  return {};
}

}  // namespace weft::ofi
