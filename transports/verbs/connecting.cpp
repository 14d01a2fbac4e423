// SPDX-License-Identifier: Apache-2.0
// Edges are connected by what is first written to them, which is kept until then.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/mark.h"
#include "base/text.h"
#include "transports/verbs/verbs_wire.h"

namespace weft::verbs {

WireResult VerbsWire::keep(Rail& rail, const WireWrite& write) {
  if (rail.kept.size() == Connection::kDepth) return WireResult::Again;
  rail.kept.push_back(write);
  if (rail.kept.size() == 1) handshakes_.want(rail.way.edge, Deadline::Clock::now());
  const Link& link = links_[rail.way.peer];
  return link.down() ? refuse(link.error) : WireResult::Accepted;
}

bool VerbsWire::readMail() {
  bool any = false;
  for (const auto& mailbox : mailboxes_)
    any |= mailbox->poll([&](std::span<const std::byte> bytes) { takeMail(*mailbox, bytes); },
                         [&](std::uint32_t edge, const char* why) {
                           linkDown(rails_[edge].way, text("a datagram was not sent: ", why));
                         });
  if (handshakes_.isPending()) handshakes_.tick(Deadline::Clock::now());
  return any;
}

void VerbsWire::takeMail(const Mailbox& at, std::span<const std::byte> bytes) {
  Datagram datagram;
  if (!readDatagram(bytes, at.id(), at.address().secret, &datagram)) return;
  Rail* const rail = railFrom(at, datagram.from);
  if (rail == nullptr && WEFT_MARK("verbs: a datagram of no edge")) return;
  const std::uint32_t edge = rail->way.edge;
  const bool wasSilent = rail->silent();
  if (datagram.word.kind == Word::Ping)
    rail->pinged |= send(edge, {.kind = Word::Pong});
  else if (datagram.word.kind == Word::Pong)
    rail->answered = true;
  else
    handshakes_.take(edge, datagram.word);
  if (wasSilent && !rail->silent()) --silent_;
}

VerbsWire::Rail* VerbsWire::railFrom(const Mailbox& at, PortId from) {
  if (from.rank >= links_.size()) return nullptr;
  const Link& link = links_[from.rank];
  const auto rails = std::span(rails_).subspan(link.first, link.rails);
  const auto found = std::ranges::find_if(rails, [&](const Rail& rail) {
    return rail.way.mailbox == &at && rail.way.farPort == from.port;
  });
  return found == rails.end() ? nullptr : &*found;
}

Status VerbsWire::make(std::uint32_t edge, Endpoint* mine) {
  Rail& rail = rails_[edge];
  auto made =
      std::make_unique<Connection>(rail.way, static_cast<std::uint32_t>(connections_.size()));
  WEFT_TRY(made->create(remoteCompletions_));
  *mine = made->endpoint();
  rail.connection = made.get();
  connections_.push_back(std::move(made));
  ready_.reserve(ready_.capacity() + 2 * Connection::kDepth);
  return {};
}

Status VerbsWire::join(std::uint32_t edge, const Endpoint& theirs) {
  return rails_[edge].connection->connect(theirs);
}

bool VerbsWire::send(std::uint32_t edge, const Word& word) {
  Rail& rail = rails_[edge];
  const Way& way = rail.way;
  if (!rail.route) rail.route = way.mailbox->route(way.gidOf(way.far), way.linkLocal);
  if (!rail.route) {
    linkDown(way, text("no address handle for its port: ", std::strerror(errno)));
    return false;
  }
  return way.mailbox->send(rail.route.get(), way.offer.mailbox,
                           {.from = way.mailbox->id(),
                            .to = {way.peer, way.farPort},
                            .secret = way.offer.mailbox.secret,
                            .word = word},
                           edge);
}

void VerbsWire::ready(std::uint32_t edge) {
  Rail& rail = rails_[edge];
  rail.ready = rail.connection;
  for (const WireWrite& write : std::exchange(rail.kept, {})) {
    tails_ |= write.quiet;
    if (!hasArea(write.area)) continue;  // a good-bye that nobody waits for any more
    const int error = post(*rail.ready, write);
    if (error == 0) continue;
    return linkDown(rail.way, text("cannot post a write: ", std::strerror(error)));
  }
}

}  // namespace weft::verbs
