// SPDX-License-Identifier: Apache-2.0
#include "control/control_link.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "base/deadline.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/handshake.h"
#include "bootstrap/joiner.h"
#include "bootstrap/listen.h"
#include "control/bodies.h"
#include "control/control_client.h"
#include "control/control_relay.h"
#include "control/control_server.h"
#include "net/fd_limit.h"
#include "transports/gather.h"

namespace weft::control {
namespace {

using transport::TransportSetup;

constexpr std::uint64_t kClientFds = 3;       // its connection, its bell, its thread's stop signal
constexpr std::int64_t kRelayOpensMs = 5000;  // else its ranks go to the server themselves

// Who comes through one relay: the ranks of a host, of which the first has it in its process. Not
// those of rank 0's, where the server is.
struct Relayed {
  std::vector<std::uint32_t> ranks;
  bool any() const { return ranks.size() > 1 && ranks[0] != 0; }
  std::uint32_t leader() const { return ranks[0]; }
};

Relayed relayedWith(const TransportSetup& setup) {
  Relayed with;
  for (std::uint32_t r = 0; r < setup.ranks; ++r)
    if (setup.names[r].host == setup.names[setup.rank].host) with.ranks.push_back(r);
  return with;
}

// Where others may come to.
struct Door {
  std::vector<net::Socket> listeners;
  bootstrap::IdContent content;
};

Status openDoor(bootstrap::IdScope scope, std::size_t comers, Door* door) {
  door->content.origin =
      bootstrap::IdContent::Origin::Created;  // so who is refused comes after its end
  WEFT_TRY(bootstrap::listenForRanks(scope, &door->listeners, &door->content.addresses));
  WEFT_TRY(net::reserveFds(comers + bootstrap::kMaxUnauthenticated + bootstrap::kRootFds));
  return net::randomBytes(door->content.secret);
}

Status openServer(const TransportSetup& setup, Deadline deadline,
                  const std::shared_ptr<NewGroups>& newGroups, bootstrap::UniqueId* id) {
  Door door;
  WEFT_TRY(openDoor(bootstrap::IdScope::Network, setup.ranks, &door));
  *id = bootstrap::encodeId(door.content);
  return startControlServer(std::move(door.listeners), door.content.secret, setup.names, deadline,
                            newGroups);
}

bootstrap::Joiner joinerOf(const TransportSetup& setup, const bootstrap::IdContent& content,
                           Deadline deadline) {
  const bootstrap::Hello hello{{},
                               bootstrap::idTag(content.secret),
                               static_cast<int>(setup.rank),
                               static_cast<int>(setup.ranks),
                               {},
                               bootstrap::libraryVersion()};
  return {content, hello, deadline};
}

bootstrap::InfoMessage infoOf(const TransportSetup& setup, const char* what) {
  return {setup.names[setup.rank], what, 0};
}

// A connection that speaks for this rank: to the server, or to a relay, which asks it for a seat.
Status takeSeat(const TransportSetup& setup, const bootstrap::IdContent& content, Deadline deadline,
                std::unique_ptr<net::Stream>* out) {
  std::string serverName;
  std::unique_ptr<net::Stream> stream;
  WEFT_TRY(
      joinerOf(setup, content, deadline).run(maxMessageBytes(setup.ranks), &stream, &serverName));
  net::Message seated{};
  const Status answered =
      stream->ask(net::MessageType::Info, bootstrap::encode(infoOf(setup, "")), deadline, &seated);
  if (!answered.ok()) return within(text("server on ", serverName, ": "), {}, answered);
  *out = std::move(stream);
  return {};
}

Status connectRelay(const TransportSetup& setup, const bootstrap::IdContent& server,
                    Deadline deadline, std::unique_ptr<net::Stream>* out) {
  std::string serverName;
  WEFT_TRY(joinerOf(setup, server, deadline).run(maxMessageBytes(setup.ranks), out, &serverName));
  (*out)->channel().send(net::MessageType::Info, bootstrap::encode(infoOf(setup, kRelay)));
  return (*out)->awaitFlushed(deadline);
}

Status openRelay(const TransportSetup& setup, const Relayed& relayed, Door door,
                 const bootstrap::IdContent& server, Deadline deadline) {
  RelaySpec spec{.leader = relayed.leader(),
                 .members = relayed.ranks.size(),
                 .ranks = setup.ranks,
                 .listeners = std::move(door.listeners),
                 .secret = door.content.secret,
                 .server = nullptr,
                 .opening = deadline};
  WEFT_TRY(connectRelay(setup, server, deadline, &spec.server));
  return startControlRelay(std::move(spec));
}

// Through the relay where there is one that can be reached, else to the server itself.
Status findSeat(const TransportSetup& setup, const bootstrap::UniqueId* relay,
                const bootstrap::IdContent& server, Deadline deadline,
                std::unique_ptr<net::Stream>* stream, bool* relayed) {
  bootstrap::IdContent content;
  if (relay != nullptr && bootstrap::decodeId(*relay, &content).ok()) {
    const Status through =
        takeSeat(setup, content, Deadline::in(kRelayOpensMs).orSooner(deadline), stream);
    *relayed = through.ok();
    if (through.ok()) return {};
    logInfo("control link of rank ", setup.rank, " goes without a relay: ", through.text());
  }
  const Status direct = takeSeat(setup, server, deadline, stream);
  if (direct.code() != Code::InvalidUsage) return direct;
  return Status::error({.code = Code::RemoteError,
                        .who = setup.names[0],
                        .what = "the control server of {who} has ended",
                        .fix = "see the log of that process"});
}

Status startEnd(const std::shared_ptr<LinkEnd>& end) {
  const Status started = net::ServiceThreads::get().start(
      "weft-control", [end](const net::StopSignal& stop) { end->run(stop); });
  if (!started.ok()) end->dismiss();
  return started;
}

Members allRanks(std::uint32_t ranks) {
  Members all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

Status connect(const TransportSetup& setup, transport::Transport& transport, std::uint32_t leader,
               const bootstrap::UniqueId* relay, const bootstrap::IdContent& server,
               std::shared_ptr<NewGroups> newGroups, Deadline deadline,
               std::shared_ptr<ControlClient>* client) {
  WEFT_TRY(net::reserveFds(kClientFds));
  std::unique_ptr<net::Stream> stream;
  bool relayed = false;
  WEFT_TRY(findSeat(setup, relay, server, deadline, &stream, &relayed));
  LinkEnd::Reach past;
  if (relayed)
    past = [setup, server](std::unique_ptr<net::Stream>* out) {
      return takeSeat(setup, server, Deadline::in(LinkEnd::kReachMs), out);
    };
  const auto end =
      std::make_shared<LinkEnd>(std::move(stream), std::move(past), std::move(newGroups));
  *client = std::make_shared<ControlClient>(setup, transport, end, allRanks(setup.ranks), leader);
  end->add(*client);
  return startEnd(end);
}

// Dropping it detaches the client; the link keeps it until it has said good-bye.
std::shared_ptr<watch::RemoteRanks> held(const std::shared_ptr<ControlClient>& client) {
  return {client.get(), [client](watch::RemoteRanks*) {
            if (client) client->detach();
          }};
}

// Relays are in the processes of those ranks that are the lowest of their host on the link. The parent
// has them, or it had not been on it.
bool mayShare(const TransportSetup& setup, const ControlClient& parent, const Members& members) {
  if (members[0] != 0) return false;
  std::map<std::string_view, std::uint32_t> leaders;
  for (std::size_t r = 0; r < parent.members().size(); ++r) {
    const std::uint32_t rank = parent.members()[r];
    const auto [leader, isNew] = leaders.emplace(parent.names()[r].host, rank);
    leader->second = std::min(leader->second, rank);
  }
  leaders.erase(setup.names[0].host);  // there is the server
  const std::set<std::uint32_t> mine(members.begin(), members.end());
  return std::ranges::all_of(setup.names, [&](const PeerName& name) {
    const auto leader = leaders.find(name.host);
    return leader == leaders.end() || mine.contains(leader->second);
  });
}

// The rank in whose process the relay is, among these.
std::uint32_t leaderOf(const TransportSetup& setup, const Members& members) {
  std::uint32_t leader = setup.rank;
  for (std::uint32_t r = 0; r < setup.ranks; ++r)
    if (setup.names[r].host == setup.names[setup.rank].host && members[r] < members[leader])
      leader = r;
  return leader;
}

// The error of this rank, as all others should read it.
Status named(const TransportSetup& setup, const Status& status) {
  if (status.ok()) return status;
  const PeerName& self = setup.names[setup.rank];
  return within(text("control link of ", self, ": "), self, status);
}

}  // namespace

Status openControlLink(const TransportSetup& setup, transport::Transport& transport,
                       std::shared_ptr<watch::RemoteRanks>* out) {
  const Deadline deadline = Deadline::in(setup.timeoutMs);
  const Relayed relayed = relayedWith(setup);
  const bool leads = relayed.any() && relayed.leader() == setup.rank;
  bootstrap::UniqueId mine{};
  Status opened;
  Door door;
  const auto newGroups = setup.rank == 0 ? std::make_shared<NewGroups>() : nullptr;
  if (setup.rank == 0) opened = openServer(setup, deadline, newGroups, &mine);
  // By loopback: for ranks of this host.
  if (leads && openDoor(bootstrap::IdScope::ThisProcess, relayed.ranks.size(), &door).ok())
    mine = bootstrap::encodeId(door.content);
  std::vector<bootstrap::UniqueId> ids;
  WEFT_TRY(transport::gather(setup, named(setup, opened), mine, &ids));

  bootstrap::IdContent server;
  Status connected = bootstrap::decodeId(ids[0], &server);
  if (connected.ok() && leads && !door.listeners.empty())
    connected = openRelay(setup, relayed, std::move(door), server, deadline);
  std::shared_ptr<ControlClient> client;
  if (connected.ok())
    connected = connect(setup, transport, relayed.leader(),
                        relayed.any() ? &ids[relayed.leader()] : nullptr, server, newGroups,
                        deadline, &client);
  std::shared_ptr<watch::RemoteRanks> keep = held(client);
  std::vector<std::vector<std::byte>> none;
  WEFT_TRY(transport::gatherBytes(setup, named(setup, connected), {}, &none));
  *out = std::move(keep);
  return {};
}

Status branchControlLink(const TransportSetup& setup, transport::Transport& transport,
                         watch::RemoteRanks* parent, const std::vector<std::uint32_t>& members,
                         std::shared_ptr<watch::RemoteRanks>* out) {
  const auto* const of = dynamic_cast<ControlClient*>(parent);
  Members onLink;
  if (of != nullptr)
    for (const std::uint32_t member : members) onLink.push_back(of->members()[member]);
  if (of == nullptr || !mayShare(setup, *of, onLink)) return openControlLink(setup, transport, out);
  std::uint32_t group = 0;
  if (setup.rank == 0) group = of->link()->newGroups()->add(onLink);
  std::vector<std::uint32_t> groups;
  WEFT_TRY(transport::gather(setup, {}, group, &groups));
  const std::uint32_t leader = leaderOf(setup, onLink);
  const auto client =
      std::make_shared<ControlClient>(setup, transport, of->link(), onLink, leader, groups[0]);
  of->link()->add(client);
  *out = held(client);
  return {};
}

}  // namespace weft::control
