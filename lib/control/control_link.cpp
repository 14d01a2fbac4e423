// SPDX-License-Identifier: Apache-2.0
#include "control/control_link.h"

#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "bootstrap/handshake.h"
#include "bootstrap/joiner.h"
#include "bootstrap/listen.h"
#include "control/bodies.h"
#include "control/control_client.h"
#include "control/control_server.h"
#include "net/fd_limit.h"
#include "transports/gather.h"

namespace weft::control {
namespace {

constexpr std::uint64_t kClientFds = 3;  // its connection, its bell, its thread's stop signal

Status openServer(const transport::TransportSetup& setup, Deadline deadline,
                  bootstrap::UniqueId* id) {
  bootstrap::IdContent content;
  std::vector<net::Socket> listeners;
  content.origin = bootstrap::IdContent::Origin::Created;  // so who is refused comes after its end
  WEFT_TRY(bootstrap::listenForRanks(bootstrap::IdScope::Network, &listeners, &content.addresses));
  WEFT_TRY(net::reserveFds(setup.ranks + bootstrap::kMaxUnauthenticated + bootstrap::kRootFds));
  WEFT_TRY(net::randomBytes(content.secret));
  *id = bootstrap::encodeId(content);
  return startControlServer(std::move(listeners), content.secret, setup.names, deadline);
}

Status connect(const transport::TransportSetup& setup, transport::Transport& transport,
               const bootstrap::UniqueId& id, Deadline deadline,
               std::shared_ptr<ControlClient>* client) {
  bootstrap::IdContent content;
  WEFT_TRY(bootstrap::decodeId(id, &content));
  WEFT_TRY(net::reserveFds(kClientFds));
  const bootstrap::Hello hello{{},
                               bootstrap::idTag(content.secret),
                               static_cast<int>(setup.rank),
                               static_cast<int>(setup.ranks),
                               {},
                               bootstrap::libraryVersion()};
  const std::size_t maxMessage = maxNewsBytes(setup.ranks) + net::Channel::kMaxFrameAfter;
  std::unique_ptr<net::Stream> stream;
  std::string serverName;
  const Status joined =
      bootstrap::Joiner(content, hello, deadline).run(maxMessage, &stream, &serverName);
  if (joined.code() == Code::InvalidUsage)
    return Status::error({.code = Code::RemoteError,
                          .who = setup.names[0],
                          .what = "the control server of {who} has ended",
                          .fix = "see the log of that process"});
  WEFT_TRY(joined);
  net::Message seated{};
  const Status answered = stream->ask(
      net::MessageType::Info,
      bootstrap::encode(bootstrap::InfoMessage{setup.names[setup.rank], "", 0}), deadline, &seated);
  if (!answered.ok()) return within(text("server on ", serverName, ": "), {}, answered);
  *client = std::make_shared<ControlClient>(setup, transport, std::move(stream));
  return net::ServiceThreads::get().start(
      "weft-control", [keep = *client](const net::StopSignal& stop) { keep->run(stop); });
}

// The error of this rank, as all others should read it.
Status named(const transport::TransportSetup& setup, const Status& status) {
  if (status.ok()) return status;
  const PeerName& self = setup.names[setup.rank];
  return within(text("control link of ", self, ": "), self, status);
}

}  // namespace

Status openControlLink(const transport::TransportSetup& setup, transport::Transport& transport,
                       std::shared_ptr<watch::RemoteRanks>* out) {
  const Deadline deadline = Deadline::in(setup.timeoutMs);
  bootstrap::UniqueId mine;
  const Status opened = setup.rank == 0 ? openServer(setup, deadline, &mine) : Status();
  std::vector<bootstrap::UniqueId> ids;
  WEFT_TRY(transport::gather(setup, named(setup, opened), mine, &ids));
  std::shared_ptr<ControlClient> client;
  const Status connected = connect(setup, transport, ids[0], deadline, &client);
  // Dropping this detaches the client; the thread keeps it until it has said good-bye.
  std::shared_ptr<watch::RemoteRanks> held(client.get(), [client](watch::RemoteRanks*) {
    if (client) client->detach();
  });
  std::vector<std::vector<std::byte>> none;
  WEFT_TRY(transport::gatherBytes(setup, named(setup, connected), {}, &none));
  *out = std::move(held);
  return {};
}

}  // namespace weft::control
