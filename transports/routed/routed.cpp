// SPDX-License-Identifier: Apache-2.0
#include "transports/routed/routed.h"

#include <algorithm>

#include "base/text.h"
#include "transports/gather.h"

namespace weft::routed {

RoutedTransport::Parts::~Parts() {
  while (!transports.empty()) transports.pop_back();
}

RoutedTransport::RoutedTransport(Parts parts)
    : parts_(std::move(parts)),
      rankOf_(parts_.transports.size()),
      lastError_(&parts_.transports[0]->lastError()) {
  for (const auto& part : parts_.transports) {
    caps_.mirrors = caps_.mirrors || part->caps().mirrors;
    caps_.polls = caps_.polls || part->caps().polls;
  }
  caps_.sleeps = caps_.polls && std::ranges::all_of(parts_.transports, [](const auto& part) {
                   return part->caps().sleeps || !part->caps().polls;
                 });
  for (std::uint32_t r = 0; r < parts_.routes.size(); ++r) {
    const Route& route = parts_.routes[r];
    std::vector<std::uint32_t>& ranks = rankOf_[route.part];
    caps_.maxPut = std::min(caps_.maxPut, parts_.transports[route.part]->caps().maxPut);
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

using Make = std::function<Status(const TransportSetup&, std::unique_ptr<Transport>*)>;

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
Status addInside(const TransportSetup& setup, const std::vector<std::uint32_t>& members,
                 const Make& make, RoutedTransport::Parts* parts) {
  TransportSetup inside = setup;
  inside.names.clear();
  for (std::uint32_t there = 0; there < members.size(); ++there) {
    parts->routes[members[there]] = {0, there};
    if (!setup.names.empty()) inside.names.push_back(setup.names[members[there]]);
  }
  inside.rank = parts->routes[setup.rank].peer;
  inside.ranks = static_cast<std::uint32_t>(members.size());
  inside.exchange = amongHost(setup, members);
  std::unique_ptr<Transport>& made = parts->transports.emplace_back();
  WEFT_TRY(make(inside, &made));
  // Before the wires', after which others read it.
  if (made) made->own().control().rank = static_cast<std::int32_t>(setup.rank);
  return {};
}

// `peers`: those that it leads to.
Status addWire(const TransportSetup& setup, std::vector<bool> peers, const Make& make,
               RoutedTransport::Parts* parts) {
  TransportSetup through = setup;
  const auto part = static_cast<std::uint32_t>(parts->transports.size());
  for (std::uint32_t r = 0; r < setup.ranks; ++r)
    if (peers[r]) parts->routes[r] = {part, r};
  through.peers = std::move(peers);
  through.inside = part == 0 ? nullptr : parts->transports[0].get();
  return make(through, &parts->transports.emplace_back());
}

void finish(RoutedTransport::Parts parts, std::unique_ptr<Transport>* out) {
  for (const auto& part : parts.transports)
    parts.name += text(parts.name.empty() ? "" : "+", part->name());
  *out = std::make_unique<RoutedTransport>(std::move(parts));
}

std::vector<std::uint32_t> ranksWhere(std::uint32_t ranks, const auto& is) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (is(r)) found.push_back(r);
  return found;
}

}  // namespace

// Where memory reaches all of them, it alone; else memory inside hosts and the wire between them.
Status RoutedTransport::branch(const TransportSetup& setup, std::span<const std::uint32_t> members,
                               std::unique_ptr<Transport>* out) {
  const auto isInside = [&](std::uint32_t r) { return parts_.routes[members[r]].part == 0; };
  const std::vector<std::uint32_t> here = ranksWhere(setup.ranks, isInside);
  std::vector<std::uint32_t> there;
  for (const std::uint32_t r : here) there.push_back(at(members[r]));
  Transport& memory = *parts_.transports[0];
  if (here.size() == members.size()) return memory.branch(setup, there, out);
  if (parts_.transports.size() != 2 || memory.caps().polls) return {};

  Parts made;
  made.routes.resize(setup.ranks);
  const Status inside = addInside(
      setup, here,
      [&](const TransportSetup& s, auto* branched) { return memory.branch(s, there, branched); },
      &made);
  std::vector<std::uint8_t> able;
  WEFT_TRY(gather(setup, inside, std::uint8_t{made.transports[0] != nullptr}, &able));
  if (std::ranges::count(able, 0) != 0) return {};
  std::vector<bool> peers(setup.ranks);
  for (std::uint32_t r = 0; r < setup.ranks; ++r) peers[r] = !isInside(r);
  WEFT_TRY(addWire(
      setup, std::move(peers),
      [&](const TransportSetup& s, auto* branched) {
        return parts_.transports[1]->branch(s, members, branched);
      },
      &made));
  if (made.transports[1]) finish(std::move(made), out);
  return {};
}

Status makeRouted(const TransportSetup& setup, const RoutedSetup& routed,
                  std::unique_ptr<Transport>* out) {
  RoutedTransport::Parts parts;
  parts.routes.resize(setup.ranks);
  parts.routes[setup.rank] = {0, setup.rank};
  const auto isHere = [&](std::uint32_t r) { return routed.hosts[r] == routed.hosts[setup.rank]; };
  if (routed.inside)
    WEFT_TRY(addInside(setup, ranksWhere(setup.ranks, isHere), routed.inside, &parts));
  for (std::uint32_t i = 0; i < routed.wires.size(); ++i) {
    std::vector<bool> peers(setup.ranks);
    for (std::uint32_t r = 0; r < setup.ranks; ++r) peers[r] = routed.wireOf[r] == i;
    WEFT_TRY(addWire(setup, std::move(peers), routed.wires[i], &parts));
  }
  finish(std::move(parts), out);
  return {};
}

}  // namespace weft::routed
