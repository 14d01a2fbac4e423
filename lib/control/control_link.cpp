// SPDX-License-Identifier: Apache-2.0
#include "control/control_link.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/deadline.h"
#include "base/log.h"
#include "base/text.h"
#include "base/threads.h"
#include "bootstrap/handshake.h"
#include "bootstrap/joiner.h"
#include "bootstrap/listen.h"
#include "control/bodies.h"
#include "control/control_client.h"
#include "control/control_relay.h"
#include "control/control_server.h"
#include "control/link_costs.h"
#include "net/fd_limit.h"
#include "transports/gather.h"

namespace weft::control {
namespace {

using transport::TransportSetup;

constexpr std::uint64_t kFirstLink = ~std::uint64_t{0};  // of a family: its number
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

// The joiner's words for an id whose root is gone are for users, who have nothing to do with this one.
Status ofServer(const TransportSetup& setup, Status joined) {
  if (joined.code() != Code::InvalidArgument) return joined;
  return Status::error({.code = Code::RemoteError,
                        .who = setup.names[0],
                        .what = "the control server of {who} has ended",
                        .fix = "see the log of that process"});
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
  bootstrap::Joiner joiner = joinerOf(setup, server, deadline);
  WEFT_TRY(ofServer(setup, joiner.run(maxMessageBytes(setup.ranks), out, &serverName)));
  (*out)->channel().send(net::MessageType::Info, bootstrap::encode(infoOf(setup, kRelay)));
  return (*out)->awaitFlushed(deadline);
}

Status openRelay(const TransportSetup& setup, const Relayed& relayed, Door door,
                 const bootstrap::IdContent& server, Deadline deadline) {
  RelaySpec spec{.leader = setup.names[relayed.leader()],
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
  return ofServer(setup, takeSeat(setup, server, deadline, stream));
}

// Who is on it keeps it, and it keeps them, as long as there is a thread that lets go in the end.
Status startEnd(const std::shared_ptr<LinkEnd>& end) {
  const Status started = withoutExceptions([&] {
    return net::ServiceThreads::get().start("weft-control",
                                            [end](const net::StopSignal& stop) { end->run(stop); });
  });
  if (!started.ok()) end->dismiss();
  return started;
}

// Dropping it detaches the client; the link keeps it until it has said good-bye.
std::shared_ptr<ControlClient> held(const std::shared_ptr<ControlClient>& client) {
  return {client.get(), [client](ControlClient*) { client->detach(); }};
}

Members allRanks(std::uint32_t ranks) {
  Members all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

Status connect(const TransportSetup& setup, transport::Transport* transport, std::uint32_t leader,
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
  const auto made = std::make_shared<ControlClient>(setup, transport, end, leader);
  *client = held(made);
  end->add(made);
  return startEnd(end);
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

// A link of these ranks; `transport` is that of the communicator that is its group 0, or null.
Status open(const TransportSetup& setup, transport::Transport* transport,
            const std::shared_ptr<NewGroups>& newGroups, std::shared_ptr<ControlClient>* out) {
  const Deadline deadline = Deadline::in(setup.timeoutMs);
  const Relayed relayed = relayedWith(setup);
  const bool leads = relayed.any() && relayed.leader() == setup.rank;
  bootstrap::UniqueId mine{};
  Status opened;
  Door door;
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
  std::vector<std::vector<std::byte>> none;
  const Status all = transport::gatherBytes(setup, named(setup, connected), {}, &none);
  if (all.ok()) *out = std::move(client);
  return all;
}

std::shared_ptr<NewGroups> newGroupsOf(const TransportSetup& setup) {
  return setup.rank == 0 ? std::make_shared<NewGroups>() : nullptr;
}

// One more link of the family, for a communicator of that number.
Status openForFamily(const TransportSetup& setup, std::uint32_t number, const FamilyPlace& at,
                     std::shared_ptr<FamilyLink>* out) {
  const auto newGroups = newGroupsOf(setup);
  if (newGroups) newGroups->add(number, allRanks(setup.ranks));
  std::shared_ptr<ControlClient> keeper;
  WEFT_TRY(open(setup, nullptr, newGroups, &keeper));
  const std::shared_ptr<LinkEnd> end = keeper->link();
  const std::uint64_t id = (std::uint64_t{at.inFamily[0]} << 32) | number;
  *out = std::make_shared<FamilyLink>(id, end, std::move(keeper), at.inFamily, setup.names);
  at.family->add(*out);
  return {};
}

std::shared_ptr<ControlClient> join(const TransportSetup& setup, transport::Transport& transport,
                                    std::uint32_t number, FamilyPlace place) {
  const FamilyLink& link = *place.link;
  const Members onLink = *link.placesOf(place.inFamily);
  const auto client =
      std::make_shared<ControlClient>(setup, &transport, link.end, leaderOf(setup, onLink), number);
  const auto holder = held(client);
  link.end->add(client);
  client->settle(std::move(place));
  return holder;
}

}  // namespace

Status openControlLink(const TransportSetup& setup, transport::Transport& transport,
                       std::shared_ptr<watch::RemoteRanks>* out) {
  std::shared_ptr<ControlClient> client;
  WEFT_TRY(open(setup, &transport, newGroupsOf(setup), &client));
  const Members all = allRanks(setup.ranks);
  const auto link =
      std::make_shared<FamilyLink>(kFirstLink, client->link(), nullptr, all, setup.names);
  client->settle({std::make_shared<LinkFamily>(), link, all});
  *out = std::move(client);
  return {};
}

LinkBranch::LinkBranch(watch::RemoteRanks* parent) {
  const auto* const of = dynamic_cast<ControlClient*>(parent);
  if (of == nullptr) return;
  parents_ = of->place();
  place_.family = parents_.family;
  links_ = place_.family->links(parents_.link);
  mine_.number = place_.family->next();
  std::ranges::transform(links_, mine_.links.begin(), [](const auto& link) { return link->id; });
}

LinkBranch::~LinkBranch() {
  if (server_ != nullptr) server_->newGroups()->drop(number_);
}

// The first of rank 0's that fits and that all have.
void LinkBranch::choose(std::uint32_t rank, const std::vector<std::uint32_t>& members,
                        const std::vector<LinkOffer>& offers) {
  if (!place_.family) return;
  for (const std::uint32_t member : members) place_.inFamily.push_back(parents_.inFamily[member]);
  number_ = static_cast<std::uint32_t>(offers[0].number);
  const auto isCommon = [&](const std::shared_ptr<FamilyLink>& link) {
    return std::ranges::all_of(offers, [&](const LinkOffer& offer) {
      return std::ranges::find(offer.links, link->id) != offer.links.end();
    });
  };
  for (const std::uint64_t id : offers[0].links) {
    const auto link = std::ranges::find(links_, id, [](const auto& each) { return each->id; });
    if (link == links_.end() || !isCommon(*link)) continue;
    const auto places = (*link)->placesOf(place_.inFamily);
    if (!places) continue;
    place_.link = *link;
    if (rank == 0) server_ = place_.link->end, server_->newGroups()->add(number_, *places);
    return;
  }
}

Status LinkBranch::open(const TransportSetup& setup, transport::Transport& transport,
                        std::shared_ptr<watch::RemoteRanks>* out) {
  if (!place_.family) return openControlLink(setup, transport, out);
  links_.clear();  // what nobody uses then may be dropped for the new one
  if (!place_.link) WEFT_TRY(openForFamily(setup, number_, place_, &place_.link));
  *out = join(setup, transport, number_, std::move(place_));
  server_.reset();
  return {};
}

}  // namespace weft::control
