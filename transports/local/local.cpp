// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/mapped/offer.h"
#include "transports/mapped/setup.h"

// Ranks as threads of one process: each finds the others' segments by their random tokens.
namespace weft {
namespace {

Status newSegment(const TransportSetup& setup, Card* card, std::shared_ptr<Mapping>* segment) {
  WEFT_TRY(randomToken(&card->token));
  *segment = std::make_shared<Mapping>(setup.layout.size(), -1);
  if ((*segment)->base() == nullptr)
    return Status::error(Code::OutOfMemory,
                         text("cannot map ", setup.layout.size(), " bytes for the segment of rank ",
                              setup.rank, ": ", std::strerror(errno),
                              "; fix: fewer ranks, a smaller WEFT_SEGMENT_KB or more memory"));
  initControlPage(*card, (*segment)->base());
  return {};
}

Status findPeers(const std::vector<Card>& cards, std::vector<MappedPeer>* peers) {
  for (const Card& card : cards) {
    MappedPeer peer;
    peer.sameProcess = true;
    peer.segment = findOffer(card.token);
    if (!peer.segment)
      return Status::error(Code::InvalidUsage,
                           text("local transport: ", nameOf(card), " is not a thread of ", "pid ",
                                ::getpid(), "; fix: WEFT_TRANSPORT=shm or auto"));
    WEFT_TRY(checkControlPage(card, peer.segment->base()));
    peers->push_back(std::move(peer));
  }
  return {};
}

}  // namespace

Status makeLocal(const TransportSetup& setup, std::unique_ptr<Transport>* out) {
  Card card = describe(setup);
  std::shared_ptr<Mapping> segment;
  const Status created = newSegment(setup, &card, &segment);
  const Offer offer(card.token, segment);
  std::vector<Card> cards;
  WEFT_TRY(gather(setup, created, card, &cards));
  WEFT_TRY(checkCards("local", cards));

  MappedParts parts{"local", setup.rank, setup.layout, false, {}};
  parts.direct =
      std::all_of(cards.begin(), cards.end(), [](auto& c) { return c.allowDirect != 0; });
  const Status found = findPeers(cards, &parts.peers);
  chooseBarriers(cards, reinterpret_cast<ControlPage&>(*segment->base()));
  std::vector<std::vector<std::byte>> none;
  WEFT_TRY(gatherBytes(setup, found, {}, &none));
  *out = std::make_unique<MappedTransport>(std::move(parts));
  return {};
}

}  // namespace weft
