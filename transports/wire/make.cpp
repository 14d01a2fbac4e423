// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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

Status allocate(const TransportSetup& setup, const WindowView& window, PeerInfo* info,
                WireTransport::Parts* parts) {
  parts->rank = setup.rank;
  parts->layout = setup.layout;
  parts->window = window.base();
  parts->control = window ? &window.control() : nullptr;
  if (!window) {
    WEFT_TRY(makeWindow(setup, info, &parts->windowMemory));
    parts->window = parts->windowMemory->base();
  }
  WEFT_TRY(
      mapPrivate(setup, "bounce buffer", BounceBuffer::bytes(setup.layout), &parts->bounceMemory));
  return mapPrivate(setup, "mirrors", WireTransport::bookBytes(setup.layout), &parts->bookMemory);
}

// Neither control page nor arrival slots: this rank fills those itself.
Regions regionsOf(const WireTransport::Parts& parts) {
  const WindowLayout& layout = parts.layout;
  const std::span<std::byte> bounce(parts.bounceMemory->base(), BounceBuffer::bytes(layout));
  const std::size_t records = BounceBuffer::recordBytes(layout);
  return {std::span(parts.window, layout.size()).subspan(layout.arena()), bounce.first(records),
          bounce.subspan(records)};
}

std::vector<bool> othersOf(const TransportSetup& setup) {
  std::vector<bool> peers = setup.peers;
  if (peers.empty()) peers.assign(setup.ranks, true);
  peers[setup.rank] = false;
  return peers;
}

}  // namespace

Status makeWireTransport(const TransportSetup& setup, const WireMaker& maker,
                         const WindowView& window, std::unique_ptr<Transport>* out) {
  WireTransport::Parts parts;
  PeerInfo info = describe(setup);
  const Status allocated = allocate(setup, window, &info, &parts);
  std::vector<PeerInfo> infos;
  WEFT_TRY(gather(setup, allocated, info, &infos));
  WEFT_TRY(checkPeers("wire", infos, HostsOf::Any));
  WireSetup wire{setup, regionsOf(parts), completionsOf(setup.layout)};
  wire.peers = othersOf(setup);
  for (std::size_t r = wire.names.size(); r < infos.size(); ++r)
    wire.names.push_back(nameOf(infos[r]));
  parts.peers = wire.peers;
  WEFT_TRY(maker(wire, &parts.wire));
  *out = std::make_unique<WireTransport>(std::move(parts));
  return {};
}

}  // namespace weft::wire
