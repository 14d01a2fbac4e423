// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "transports/setup.h"
#include "transports/wire/wire_transport.h"

namespace weft::wire {
namespace {

// Receives that a wire keeps ready are no more than that for each peer, whatever the ranks put:
// with few arrival slots all of them, else those that the engine gives to one writer.
constexpr std::uint32_t kAllArrivals = 2048;

std::uint32_t completionsOf(const WindowLayout& layout) {
  const std::uint32_t arrivals = BounceBuffer::arrivalsOf(layout), tells = 2 * kMaxLanes;
  return std::min(arrivals, std::max(kAllArrivals, arrivals / layout.ranks)) + tells;
}

Status allocate(const TransportSetup& setup, PeerInfo* info, WireEnd::Parts* parts) {
  parts->rank = setup.rank;
  parts->layout = setup.layout;
  if (setup.inside != nullptr) {
    parts->window = setup.inside->window();
    parts->control = &setup.inside->own().control();
  } else {
    std::shared_ptr<Mapping> window;
    WEFT_TRY(makeWindow(setup, info, &window));
    parts->window = pagesOf(std::move(window));
  }
  WEFT_TRY(
      mapPrivate(setup, "bounce buffer", BounceBuffer::bytes(setup.layout), &parts->bounceMemory));
  return mapPrivate(setup, "mirrors", WireEnd::bookBytes(setup.layout), &parts->bookMemory);
}

std::vector<bool> othersOf(const TransportSetup& setup) {
  std::vector<bool> peers = setup.peers;
  if (peers.empty()) peers.assign(setup.ranks, true);
  peers[setup.rank] = false;
  return peers;
}

}  // namespace

Status makeWireTransport(const TransportSetup& setup, const WireMaker& maker,
                         std::unique_ptr<Transport>* out) {
  WireTransport::Parts parts;
  PeerInfo info = describe(setup);
  const Status allocated = allocate(setup, &info, &parts);
  std::vector<PeerInfo> infos;
  WEFT_TRY(gather(setup, allocated, info, &infos));
  WEFT_TRY(checkPeers("wire", infos, HostsOf::Any));
  WireSetup wire{setup, WireEnd::regionsOf(parts), completionsOf(setup.layout)};
  wire.peers = othersOf(setup);
  for (std::size_t r = wire.names.size(); r < infos.size(); ++r)
    wire.names.push_back(nameOf(infos[r]));
  parts.peers = wire.peers;
  WEFT_TRY(maker(wire, &parts.wire));
  *out = std::make_unique<WireTransport>(std::move(parts));
  return {};
}

namespace {

// One more communicator on a wire.
class Branching {
 public:
  Branching(const TransportSetup& setup, std::shared_ptr<SharedWire> shared, WireArea area)
      : setup_(setup), shared_(std::move(shared)), area_(std::move(area)) {}
  ~Branching();
  Status run(std::unique_ptr<Transport>* out);

 private:
  // What a rank tells of it; behind it lies its contact.
  struct Told {
    std::uint32_t able = 0;
    std::uint32_t firstValue = 0;
  };

  Status prepare();
  Status join(const std::vector<std::vector<std::byte>>& all, std::unique_ptr<Transport>* out);
  std::vector<std::byte> record() const;
  static Told toldIn(const std::vector<std::byte>& record) {
    Told told;
    std::memcpy(&told, record.data(), sizeof(told));
    return told;
  }

  const TransportSetup& setup_;
  const std::shared_ptr<SharedWire> shared_;
  WireArea area_;
  WireEnd::Parts parts_;
  std::uint32_t number_ = 0;  // 0: none is reserved
  std::uint32_t firstValue_ = 0;
  std::vector<std::byte> contact_;
};

Branching::~Branching() {
  const auto held = shared_->lock();
  if (number_ != 0) shared_->release(number_);
}

Status Branching::prepare() {
  PeerInfo info = describe(setup_);
  WEFT_TRY(allocate(setup_, &info, &parts_));
  parts_.peers = othersOf(setup_);
  area_.regions = WireEnd::regionsOf(parts_);
  area_.layout = setup_.layout;
  const auto held = shared_->lock();
  Wire& wire = shared_->wire();
  contact_.resize(wire.contactBytes());
  if (contact_.empty() ||
      !shared_->reserve(WireEnd::valuesOf(setup_.layout), &number_, &firstValue_))
    return {};
  return wire.openArea(number_, area_, contact_);
}

std::vector<std::byte> Branching::record() const {
  const Told told{number_ != 0, firstValue_};
  std::vector<std::byte> record(sizeof(told) + contact_.size());
  std::memcpy(record.data(), &told, sizeof(told));
  std::ranges::copy(contact_, record.begin() + sizeof(told));
  return record;
}

Status Branching::join(const std::vector<std::vector<std::byte>>& all,
                       std::unique_ptr<Transport>* out) {
  std::vector<std::uint32_t> firsts;
  std::vector<std::span<const std::byte>> contacts;
  for (const std::vector<std::byte>& record : all) {
    firsts.push_back(toldIn(record).firstValue);
    contacts.push_back(std::span(record).subspan(sizeof(Told)));
  }
  std::shared_ptr<WireEnd> end;
  {
    const auto held = shared_->lock();
    WEFT_TRY(shared_->wire().joinArea(number_, contacts));
    AreaWire wire(shared_->wire(), WireEnd::valuesOf(setup_.layout), number_, area_.peers,
                  firstValue_);
    wire.learnFirsts(std::move(firsts));
    end = std::make_shared<WireEnd>(std::move(parts_), wire);
  }
  *out = std::make_unique<WireTransport>(shared_, std::move(end));
  number_ = 0;  // it is the transport's
  return {};
}

Status Branching::run(std::unique_ptr<Transport>* out) {
  const Status prepared = prepare();
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(gatherBytes(setup_, prepared, record(), &all));
  const bool able = std::ranges::all_of(all, [](const auto& r) { return toldIn(r).able != 0; });
  return able ? join(all, out) : Status();
}

}  // namespace

Status WireTransport::branch(const TransportSetup& setup, std::span<const std::uint32_t> members,
                             std::unique_ptr<Transport>* out) {
  WireArea area;
  for (const std::uint32_t member : members) area.peers.push_back(end_->wire().peer(member));
  return Branching(setup, shared_, std::move(area)).run(out);
}

}  // namespace weft::wire
