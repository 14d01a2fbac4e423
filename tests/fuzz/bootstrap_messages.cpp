// SPDX-License-Identifier: Apache-2.0
// Messages between ranks and the root; the first byte chooses which.
#include "bootstrap/hub_messages.h"
#include "bootstrap/messages.h"

#include <optional>

#include "fuzz.h"

namespace weft::fuzz {
namespace {

constexpr std::size_t kRanks = 1 << 20;

template <class Message>
void tryMessage(net::ByteView bytes) {
  requireRoundTrip(
      bytes, [](const Message& m) { return bootstrap::encode(m); },
      [](net::ByteView from) {
        Message m;
        return bootstrap::decode(from, &m) ? std::optional(m) : std::nullopt;
      });
}

void tryRoster(net::ByteView bytes) {
  std::vector<PeerName> infos;
  require(!bootstrap::decodeRoster(bytes, kRanks, &infos), "no such roster is short");
  for (std::size_t ranks = 0; ranks < 4; ++ranks) {
    if (!bootstrap::decodeRoster(bytes, ranks, &infos)) continue;
    require(infos.size() == ranks, "a roster names all ranks");
    require(bootstrap::encodeRoster(infos).size() <= bootstrap::maxRosterBytes(ranks),
            "a roster is as long as announced");
  }
}

void tryParts(net::ByteView bytes) {
  std::vector<net::Bytes> parts, again;
  require(!bootstrap::decodeParts(bytes, kRanks, &parts), "no such table is short");
  for (std::size_t ranks = 0; ranks < 4; ++ranks) {
    if (!bootstrap::decodeParts(bytes, ranks, &parts)) continue;
    const net::Bytes written = bootstrap::encodeParts(parts);
    require(bootstrap::decodeParts(written, ranks, &again) && again == parts,
            "what was written reads as the same");
    require(written.size() <= bootstrap::maxPartsBytes(ranks), "a table is as long as announced");
  }
}

void tryPassed(net::ByteView bytes) {
  std::vector<bootstrap::Passed> all, again;
  if (!bootstrap::decodePassed(bytes, &all)) return;
  std::size_t count = 0;
  for (const net::Bytes& body : bootstrap::encodePassed(all)) {
    require(bootstrap::decodePassed(body, &again), "what was written can be read");
    count += again.size();
  }
  require(count == all.size(), "what is passed on arrives once");
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const net::ByteView body = bytesOf(input.subspan(1));
  switch (input[0] % 10) {
    case 0:
      return tryMessage<bootstrap::Hello>(body);
    case 1:
      return tryMessage<bootstrap::Challenge>(body);
    case 2:
      return tryMessage<bootstrap::InfoMessage>(body);
    case 3:
      return tryMessage<bootstrap::GatherMessage>(body);
    case 4:
      return tryMessage<Status>(body);
    case 5:
      return tryRoster(body);
    case 6:
      return tryParts(body);
    case 7:
      return tryMessage<bootstrap::Member>(body);
    case 8:
      return tryMessage<bootstrap::HubName>(body);
    default:
      return tryPassed(body);
  }
}

}  // namespace weft::fuzz
