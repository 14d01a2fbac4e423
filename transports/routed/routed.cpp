// SPDX-License-Identifier: Apache-2.0
#include "transports/routed/routed.h"

#include <algorithm>

#include "base/text.h"

namespace weft::routed {

RoutedTransport::Parts::~Parts() {
  while (!transports.empty()) transports.pop_back();
}

RoutedTransport::RoutedTransport(Parts parts)
    : parts_(std::move(parts)),
      rankOf_(parts_.transports.size()),
      lastError_(&parts_.transports[0]->lastError()) {
  for (const auto& part : parts_.transports) {
    caps_.polls = caps_.polls || part->caps().polls;
    caps_.maxPut = std::min(caps_.maxPut, part->caps().maxPut);
  }
  caps_.sleeps = caps_.polls && std::ranges::all_of(parts_.transports, [](const auto& part) {
                   return part->caps().sleeps || !part->caps().polls;
                 });
  for (std::uint32_t r = 0; r < parts_.routes.size(); ++r) {
    const Route& route = parts_.routes[r];
    std::vector<std::uint32_t>& ranks = rankOf_[route.part];
    ranks.resize(std::max<std::size_t>(ranks.size(), route.peer + 1));
    ranks[route.peer] = r;
  }
}

bool RoutedTransport::getFrom(std::uint32_t p, std::uint64_t from, void* to, std::size_t bytes) {
  return answers(p, of(p).getFrom(at(p), from, to, bytes));
}

bool RoutedTransport::putTo(std::uint32_t p, std::uint64_t to, const void* from,
                            std::size_t bytes) {
  return answers(p, of(p).putTo(at(p), to, from, bytes));
}

bool RoutedTransport::answers(std::uint32_t p, bool done) {
  if (!done) lastError_ = &of(p).lastError();
  return done;
}

// Where all of them are reached by the first, which is memory if any peer is.
Status RoutedTransport::branch(const TransportSetup& setup, std::span<const std::uint32_t> members,
                               std::unique_ptr<Transport>* out) {
  std::vector<std::uint32_t> there;
  for (const std::uint32_t member : members) {
    if (parts_.routes[member].part != 0) return {};
    there.push_back(at(member));
  }
  return parts_.transports[0]->branch(setup, there, out);
}

PutResult RoutedTransport::put(const Put& put) {
  Put there = put;
  there.peer = at(put.peer);
  const PutResult result = of(put.peer).put(there);
  if (result == PutResult::Failed) lastError_ = &of(put.peer).lastError();
  return result;
}

int RoutedTransport::poll(Event* out, int max) {
  int count = 0;
  for (std::size_t i = 0; i < parts_.transports.size() && count < max; ++i) {
    Transport& part = *parts_.transports[i];
    const int more = part.poll(out + count, max - count);
    for (int k = count; k < count + more; ++k) {
      if (out[k].kind != Event::PutDone) lastError_ = &part.lastError();
      out[k].peer = rankOf_[i][out[k].peer];
    }
    count += more;
  }
  return count;
}

bool RoutedTransport::handOver() {
  for (std::size_t i = 0; i < parts_.transports.size(); ++i) {
    Transport& part = *parts_.transports[i];
    if (!part.caps().polls || part.handOver()) continue;
    while (i-- > 0) parts_.transports[i]->acquireProgress();
    return false;
  }
  return true;
}

std::size_t RoutedTransport::outstanding() const {
  std::size_t sum = 0;
  for (const auto& part : parts_.transports) sum += part->outstanding();
  return sum;
}

namespace {

// The exchange of all ranks, seen by those of one host.
Exchange amongHost(const TransportSetup& setup, const std::vector<std::uint32_t>& members) {
  return [exchange = setup.exchange, members](std::span<const std::byte> mine,
                                              std::vector<std::vector<std::byte>>* all) {
    std::vector<std::vector<std::byte>> everybody;
    WEFT_TRY(exchange(mine, &everybody));
    all->clear();
    for (const std::uint32_t r : members) all->push_back(std::move(everybody[r]));
    return Status();
  };
}

// The ranks of this rank's host, by memory.
Status addInside(const TransportSetup& setup, const RoutedSetup& routed,
                 RoutedTransport::Parts* parts) {
  TransportSetup inside = setup;
  std::vector<std::uint32_t> members;
  inside.names.clear();
  for (std::uint32_t r = 0; r < setup.ranks; ++r) {
    if (routed.hosts[r] != routed.hosts[setup.rank]) continue;
    parts->routes[r] = {0, static_cast<std::uint32_t>(members.size())};
    members.push_back(r);
    if (!setup.names.empty()) inside.names.push_back(setup.names[r]);
  }
  inside.rank = parts->routes[setup.rank].peer;
  inside.ranks = static_cast<std::uint32_t>(members.size());
  inside.exchange = amongHost(setup, members);
  WEFT_TRY(routed.inside(inside, &parts->transports.emplace_back()));
  parts->transports[0]->own().control().rank = static_cast<std::int32_t>(setup.rank);
  return {};
}

Status addWire(const TransportSetup& setup, const RoutedSetup& routed, std::uint32_t wire,
               RoutedTransport::Parts* parts) {
  TransportSetup through = setup;
  through.peers.assign(setup.ranks, false);
  const auto part = static_cast<std::uint32_t>(parts->transports.size());
  for (std::uint32_t r = 0; r < setup.ranks; ++r) {
    through.peers[r] = routed.wireOf[r] == wire;
    if (through.peers[r]) parts->routes[r] = {part, r};
  }
  const WindowView window = part == 0 ? WindowView() : parts->transports[0]->own();
  return routed.wires[wire](through, window, &parts->transports.emplace_back());
}

}  // namespace

Status makeRouted(const TransportSetup& setup, const RoutedSetup& routed,
                  std::unique_ptr<Transport>* out) {
  RoutedTransport::Parts parts;
  parts.routes.resize(setup.ranks);
  parts.routes[setup.rank] = {0, setup.rank};
  if (routed.inside) WEFT_TRY(addInside(setup, routed, &parts));
  for (std::uint32_t i = 0; i < routed.wires.size(); ++i)
    WEFT_TRY(addWire(setup, routed, i, &parts));
  for (const auto& part : parts.transports)
    parts.name += text(parts.name.empty() ? "" : "+", part->name());
  *out = std::make_unique<RoutedTransport>(std::move(parts));
  return {};
}

}  // namespace weft::routed
