// SPDX-License-Identifier: Apache-2.0
#include "control/control_link.h"

#include <span>
#include <utility>

#include "base/text.h"
#include "bootstrap/fd_limit.h"
#include "bootstrap/handshake.h"
#include "bootstrap/joiner.h"
#include "bootstrap/listen.h"
#include "control/bodies.h"
#include "control/hub.h"
#include "control/spoke.h"
#include "transports/mapped/setup.h"

namespace weft {
namespace {

constexpr std::uint64_t kSpokeFds = 3;  // its connection, its bell, its thread's stop signal

Status openHub(const ControlLinkSetup& setup, UniqueId* id) {
  IdContent content;
  std::vector<Socket> listeners;
  content.origin = IdContent::Origin::Address;  // a refusal may be temporary: be patient
  WEFT_TRY(listenForRanks(IdScope::Network, &listeners, &content.addresses));
  WEFT_TRY(reserveFds(setup.ranks + kMaxStrangers));
  WEFT_TRY(randomBytes(content.secret));
  *id = encodeId(content);
  return startHub(std::move(listeners), content.secret, setup.names, setup.deadline);
}

Status enter(Stream* stream, Deadline deadline) {
  CardMessage card;
  card.card = cardOfThisProcess();
  stream->channel().send(MessageType::Card, encode(card));
  Status error;
  Message seated{};
  if (!awaitFlushed(stream, deadline, &error) || !awaitMessage(stream, deadline, &seated, &error))
    return error.ok() ? Status::error(Code::Timeout, "the hub of the control link does not answer")
                      : error;
  return {};
}

Status connect(const ControlLinkSetup& setup, const UniqueId& id, std::shared_ptr<Spoke>* spoke) {
  IdContent content;
  WEFT_TRY(decodeId(id, &content));
  WEFT_TRY(reserveFds(kSpokeFds));
  const Hello hello{
      {}, idTag(content.secret), static_cast<int>(setup.rank), static_cast<int>(setup.ranks),
      {}, libraryVersion()};
  std::unique_ptr<Stream> stream;
  std::string hubName;
  WEFT_TRY(Joiner(content, hello, setup.deadline)
               .run(maxNewsBytes(setup.ranks) + Channel::kMaxFrameAfter, &stream, &hubName));
  WEFT_TRY(enter(stream.get(), setup.deadline));
  *spoke = std::make_shared<Spoke>(setup, std::move(stream));
  return ServiceThreads::get().start("weft-control",
                                     [keep = *spoke](const StopSignal& stop) { keep->run(stop); });
}

// The error of this rank, as all others should read it.
Status named(const ControlLinkSetup& setup, const Status& status) {
  if (status.ok()) return status;
  return Status::error(status.code(), text("control link of ", describe(setup.names[setup.rank]),
                                           ": ", status.text()));
}

}  // namespace

Status openControlLink(const ControlLinkSetup& setup, std::shared_ptr<FarRanks>* out) {
  TransportSetup all;
  all.rank = setup.rank;
  all.ranks = setup.ranks;
  all.exchange = setup.exchange;
  UniqueId mine;
  const Status opened = setup.rank == 0 ? openHub(setup, &mine) : Status();
  std::vector<UniqueId> ids;
  WEFT_TRY(gather(all, named(setup, opened), mine, &ids));
  std::shared_ptr<Spoke> spoke;
  const Status connected = connect(setup, ids[0], &spoke);
  // Whoever holds this lets go of the spoke, which the thread keeps until it has said good-bye.
  std::shared_ptr<FarRanks> held(spoke.get(), [spoke](FarRanks*) {
    if (spoke) spoke->detach();
  });
  std::vector<std::vector<std::byte>> none;
  WEFT_TRY(gatherBytes(all, named(setup, connected), {}, &none));
  *out = std::move(held);
  return {};
}

}  // namespace weft
