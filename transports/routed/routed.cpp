// SPDX-License-Identifier: Apache-2.0
#include "transports/routed/routed.h"

#include <algorithm>

#include "base/text.h"

namespace weft {

RoutedTransport::RoutedTransport(Parts parts)
    : parts_(std::move(parts)),
      rankOf_(parts_.transports.size()),
      lastError_(&parts_.transports[0]->lastError()) {
  for (const auto& part : parts_.transports) {
    caps_.polls = caps_.polls || part->caps().polls;
    caps_.maxPut = std::min(caps_.maxPut, part->caps().maxPut);
  }
  for (std::uint32_t r = 0; r < parts_.routes.size(); ++r) {
    const Route& route = parts_.routes[r];
    std::vector<std::uint32_t>& ranks = rankOf_[route.part];
    ranks.resize(std::max<std::size_t>(ranks.size(), route.peer + 1));
    ranks[route.peer] = r;
  }
}

bool RoutedTransport::fetch(std::uint32_t p, std::uint64_t from, void* to, std::size_t bytes) {
  lastError_ = &of(p).lastError();
  return of(p).fetch(at(p), from, to, bytes);
}

bool RoutedTransport::deposit(std::uint32_t p, std::uint64_t to, const void* from,
                              std::size_t bytes) {
  lastError_ = &of(p).lastError();
  return of(p).deposit(at(p), to, from, bytes);
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

}  // namespace

Status makeRouted(const TransportSetup& setup, const RoutedSetup& routed,
                  std::unique_ptr<Transport>* out) {
  RoutedTransport::Parts parts;
  TransportSetup inside = setup, between = setup;
  std::vector<std::uint32_t> members;
  between.peers.assign(setup.ranks, true);
  for (std::uint32_t r = 0; r < setup.ranks; ++r) {
    const bool here = routed.hosts[r] == routed.hosts[setup.rank];
    const auto number = static_cast<std::uint32_t>(members.size());
    parts.routes.push_back(here ? RoutedTransport::Route{0, number} : RoutedTransport::Route{1, r});
    between.peers[r] = !here;
    if (here) members.push_back(r);
  }
  inside.names.clear();
  for (const std::uint32_t r : members)
    if (!setup.names.empty()) inside.names.push_back(setup.names[r]);
  inside.rank = parts.routes[setup.rank].peer;
  inside.ranks = static_cast<std::uint32_t>(members.size());
  inside.exchange = amongHost(setup, members);
  parts.transports.resize(2);
  WEFT_TRY(routed.inside(inside, &parts.transports[0]));
  parts.transports[0]->own().control().rank = static_cast<std::int32_t>(setup.rank);
  WEFT_TRY(routed.between(between, parts.transports[0]->own().base(), &parts.transports[1]));
  parts.name = text(parts.transports[0]->name(), "+", parts.transports[1]->name());
  *out = std::make_unique<RoutedTransport>(std::move(parts));
  return {};
}

}  // namespace weft
