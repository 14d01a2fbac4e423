// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transports/mapped/setup.h"
#include "transports/wire/wire_transport.h"

// A wire's transport from its set-up: memory, who is who, the wire itself, mirrors.
namespace weft {
namespace {

// Receives that a wire keeps ready are no more than that for each peer, whatever the ranks put:
// with few cells all of them, else the cells that the engine gives to one writer.
constexpr std::uint32_t kAllCells = 2048;

std::uint32_t noticesOf(const SegmentLayout& layout) {
  const std::uint32_t cells = Mailbox::cellsOf(layout), tells = 2 * kParities;
  return std::min(cells, std::max(kAllCells, cells / layout.ranks)) + tells;
}

Status noMemory(const char* what, std::size_t bytes, std::uint32_t rank) {
  return Status::error(
      Code::OutOfMemory,
      text("cannot map ", bytes, " bytes for the ", what, " of rank ", rank, ": ",
           std::strerror(errno), "; fix: fewer ranks, a smaller WEFT_SEGMENT_KB or more memory"));
}

Status allocate(const TransportSetup& setup, std::byte* segment, Card* card,
                WireTransport::Parts* parts) {
  parts->rank = setup.rank;
  parts->layout = setup.layout;
  parts->segment = segment;
  if (segment == nullptr) {
    WEFT_TRY(randomToken(&card->token));
    parts->segmentMemory = std::make_shared<Mapping>(setup.layout.size(), -1);
    parts->segment = parts->segmentMemory->base();
    if (parts->segment == nullptr) return noMemory("segment", setup.layout.size(), setup.rank);
    initControlPage(*card, parts->segment);
  }
  const std::size_t bytes = Mailbox::bytes(setup.layout);
  parts->mailboxMemory = std::make_unique<Mapping>(bytes, -1);
  if (parts->mailboxMemory->base() == nullptr) return noMemory("mailbox", bytes, setup.rank);
  return {};
}

std::vector<bool> othersOf(const TransportSetup& setup) {
  std::vector<bool> peers = setup.peers;
  if (peers.empty()) peers.assign(setup.ranks, true);
  peers[setup.rank] = false;
  return peers;
}

void addMirrors(const std::vector<Card>& cards, const std::vector<bool>& peers,
                WireTransport::Parts* parts) {
  parts->mirrors.resize(cards.size());
  for (std::size_t r = 0; r < cards.size(); ++r) {
    if (!peers[r]) continue;
    parts->mirrors[r] = std::make_unique<ControlPage>();
    parts->mirrors[r]->rank = static_cast<std::int32_t>(r);
    parts->mirrors[r]->pid = cards[r].pid;
  }
}

}  // namespace

Status makeWireTransport(const TransportSetup& setup, const WireMaker& maker, std::byte* segment,
                         std::unique_ptr<Transport>* out) {
  WireTransport::Parts parts;
  Card card = describe(setup);
  const Status allocated = allocate(setup, segment, &card, &parts);
  std::vector<Card> cards;
  WEFT_TRY(gather(setup, allocated, card, &cards));
  WEFT_TRY(checkCards("wire", cards, HostsOf::Any));
  WireSetup wire{setup, {}, {}, 0};
  wire.peers = othersOf(setup);
  for (std::size_t r = wire.names.size(); r < cards.size(); ++r)
    wire.names.push_back(nameOf(cards[r]));
  wire.segment = {parts.segment, setup.layout.size()};
  wire.mailbox = {parts.mailboxMemory->base(), Mailbox::bytes(setup.layout)};
  wire.noticesPerPeer = noticesOf(setup.layout);
  addMirrors(cards, wire.peers, &parts);
  WEFT_TRY(maker(wire, &parts.wire));
  *out = std::make_unique<WireTransport>(std::move(parts));
  return {};
}

}  // namespace weft
