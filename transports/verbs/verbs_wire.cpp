// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/verbs_wire.h"

#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"

namespace weft::verbs {
namespace {

constexpr int kCompletions = 32;          // taken from a queue at once
constexpr std::uint32_t kIdlePolls = 64;  // until the clock is looked at
constexpr std::uint32_t kMailEvery = 8;   // polls
constexpr int kLookEveryMs = 5;           // for asynchronous events
constexpr int kDrainMs = 500;

// An asynchronous event of a device that ends something.
struct DeviceEvent {
  std::uint32_t port = 0;                  // 0: of all ports
  const Connection* connection = nullptr;  // of that one only
  std::string what;
};

// False: an event that ends nothing.
bool understand(const Library& verbs, const Device& device, const ibv_async_event& event,
                DeviceEvent* out) {
  *out = {};
  const char* const what = verbs.event_type_str(event.event_type);
  switch (event.event_type) {
    case IBV_EVENT_PORT_ERR:
      out->port = static_cast<std::uint32_t>(event.element.port_num);
      out->what = text("port ", device.name(), ':', out->port, " went down");
      return true;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
      out->what = text("device ", device.name(), " failed: ", what);
      return true;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      out->connection = static_cast<const Connection*>(event.element.qp->qp_context);
      out->what =
          text("queue pair ", event.element.qp->qp_num, " of ", device.name(), " failed: ", what);
      return true;
    default:
      logDebug("verbs: ", device.name(), ": ", what);
      return false;
  }
}

// The next one; false: none. Never blocks. Nothing else reads the events, so none is lost.
bool nextEvent(const Device& device, DeviceEvent* out) {
  const Library& verbs = device.verbs();
  ibv_async_event event{};
  while (verbs.get_async_event(device.context(), &event) == 0) {
    const bool matters = understand(verbs, device, event, out);
    verbs.ack_async_event(&event);  // last: until then its queue pair cannot go
    if (matters) return true;
  }
  return false;
}

}  // namespace

VerbsWire::VerbsWire(const WireSetup& setup)
    : names_(setup.names),
      rank_(setup.rank),
      remoteCompletions_(setup.completionsPerPeer),
      regions_(setup.regions),
      links_(setup.ranks),
      handshakes_(*this, setup.timeoutMs) {}

VerbsWire::~VerbsWire() { drain(); }

Domain& VerbsWire::add(std::unique_ptr<Domain> domain) {
  domains_.push_back(std::move(domain));
  return *domains_.back();
}

Mailbox& VerbsWire::add(std::unique_ptr<Mailbox> mailbox) {
  mailboxes_.push_back(std::move(mailbox));
  return *mailboxes_.back();
}

void VerbsWire::setWays(std::vector<Way> ways, std::size_t ports) {
  ports_ = ports;
  for (std::uint32_t edge = 0; edge < ways.size(); ++edge) {
    Way& way = ways[edge];
    way.edge = edge;
    maxWrite_ = std::min(maxWrite_, way.port().maxMessage);
    Link& link = links_[way.peer];
    if (link.rails++ == 0) link.first = edge;
    rails_.push_back({.way = std::move(way)});
  }
  silent_ = static_cast<std::uint32_t>(rails_.size());
  ready_.reserve(2 * links_.size());
}

bool VerbsWire::isConnected(std::uint32_t peer) const {
  return std::ranges::any_of(railsTo(peer),
                             [&](const Rail& rail) { return handshakes_.isJoined(rail.way.edge); });
}

std::string VerbsWire::describe(std::uint32_t peer) const {
  std::string words = "verbs";
  const char* before = ", ";
  for (const Rail& rail : railsTo(peer)) {
    words += text(before, rail.way.route(), ", MTU ", rail.way.mtu());
    before = " + ";
  }
  return words;
}

bool VerbsWire::sendsFrom(const std::byte* memory, std::size_t bytes, std::uint32_t area) const {
  return std::ranges::any_of(regionsOf(area),
                             [&](const auto& region) { return contains(region, memory, bytes); });
}

const char* VerbsWire::faultOf(const WireWrite& write) const {
  if (write.peer >= links_.size()) return "there is no such rank";
  const Link& link = links_[write.peer];
  if (write.rail >= link.rails) return "there is no such rail";
  if (write.bytes > maxWrite_) return "it is longer than a write may be";
  if (!hasArea(write.area)) return "there is no such area";
  if (!write.endsWithin(targetOf(rails_[link.first + write.rail].way, write).bytes))
    return "its target is outside of the region";
  if (write.bytes != 0 && !sendsFrom(write.src, write.bytes, write.area))
    return "its source is not registered";
  return nullptr;
}

WireResult VerbsWire::refuse(Status why) {
  lastError_ = std::move(why);
  return WireResult::Failed;
}

WireResult VerbsWire::write(const WireWrite& write) {
  if (const char* const fault = faultOf(write)) [[unlikely]]
    return refuse(refusal("verbs", write, fault));
  const Link& link = links_[write.peer];
  if (link.down()) [[unlikely]]
    return refuse(link.error);
  Rail& rail = rails_[link.first + write.rail];
  if (rail.ready == nullptr) [[unlikely]]
    return keep(rail, write);
  if (rail.ready->full()) return WireResult::Again;
  const int error = post(*rail.ready, write);
  tails_ |= write.quiet;
  if (error == 0) return WireResult::Accepted;
  if (error == ENOMEM) return WireResult::Again;
  linkDown(rail.way, text("cannot post a write: ", std::strerror(error)));
  return refuse(link.error);
}

// Ends with a LinkDown, so that lastError() is about that one.
int VerbsWire::poll(WireEvent* out, int max) {
  if (next_ == ready_.size()) {
    ready_.clear();
    next_ = 0;
    if (++polls_ % kMailEvery == 0 || handshakes_.isPending()) readMail();
    if (!gather()) {
      lookAround();
      if (ready_.empty()) return 0;
    }
  }
  int count = 0;
  while (count < max && next_ < ready_.size()) {
    const WireEvent& event = ready_[next_++];
    out[count++] = event;
    if (event.kind != WireEvent::LinkDown) continue;
    lastError_ = links_[event.peer].error;
    break;
  }
  return count;
}

// What has come before the queues were to notify is looked for afterwards. Connections need nobody
// here; only who waits is woken by them.
bool VerbsWire::arm(std::vector<pollfd>* descriptors, bool waits) {
  if (tails_) flushTails();
  bool armed = true;
  const auto watch = [&](auto& queues) {
    armed &= queues.notify();
    descriptors->push_back({queues.descriptor(), POLLIN, 0});
  };
  for (const auto& mailbox : mailboxes_) watch(*mailbox);
  for (const auto& domain : domains_) {
    takeEvents(domain->device());
    descriptors->push_back({domain->device().context()->async_fd, POLLIN, 0});
    if (waits) watch(*domain);
  }
  const bool mail = readMail();
  return armed && !mail && !(waits && gather()) && next_ == ready_.size();
}

bool VerbsWire::gather() {
  bool any = false;
  for (const auto& domain : domains_)
    for (const auto& queue : domain->queues()) {
      ibv_wc completions[kCompletions];
      const int count = queue->context->ops.poll_cq(queue.get(), kCompletions, completions);
      for (int i = 0; i < count; ++i) take(completions[i]);
      any |= count > 0;
    }
  return any;
}

void VerbsWire::take(const ibv_wc& completion) {
  Connection& connection = *connections_[Connection::indexOf(completion.wr_id)];
  const Way& way = connection.way();
  const std::uint32_t peer = way.peer;
  if (links_[peer].down()) return;
  if (completion.status != IBV_WC_SUCCESS) return takeError(connection, completion);
  if ((completion.wr_id & Connection::kReceive) == 0) {
    connection.complete(completion.wr_id, [&](std::uint64_t cookie) {
      ready_.push_back({.kind = WireEvent::Sent, .peer = peer, .cookie = cookie});
    });
    return;
  }
  if (rails_[way.edge].ready == nullptr) [[unlikely]]
    handshakes_.heard(way.edge);
  ready_.push_back(
      {.kind = WireEvent::RemoteCompletion, .peer = peer, .immediate = ntohl(completion.imm_data)});
  if (const int error = connection.renew())
    linkDown(way, text("cannot post receives: ", std::strerror(error)));
}

// An event, if there is one, says more: that the port went down.
void VerbsWire::takeError(const Connection& connection, const ibv_wc& completion) {
  takeEvents(connection.domain().device());
  linkDown(connection.way(),
           text(connection.domain().verbs().wc_status_str(completion.status), " (status ",
                static_cast<int>(completion.status), ", vendor error ", completion.vendor_err,
                ", queue pair ", connection.endpoint().number, ")"));
}

// When there was nothing to take.
void VerbsWire::lookAround() {
  if (tails_) flushTails();
  if (++idlePolls_ < kIdlePolls) return;
  idlePolls_ = 0;
  if (!nextLook_.expired()) return;
  nextLook_ = Deadline::in(kLookEveryMs);
  for (const auto& domain : domains_) takeEvents(domain->device());
}

void VerbsWire::flushTails() {
  tails_ = false;
  for (const auto& connection : connections_) {
    if (!connection->wantsFlush() || links_[connection->way().peer].down()) continue;
    tails_ |= connection->full() || connection->flush() != 0;
  }
}

void VerbsWire::takeEvents(const Device& device) {
  for (DeviceEvent event; nextEvent(device, &event);)
    for (const Rail& rail : rails_) {
      const Way& way = rail.way;
      if (&way.mailbox->domain().device() != &device) continue;
      if (event.port != 0 && event.port != way.port().number) continue;
      if (event.connection != nullptr && event.connection != rail.connection) continue;
      linkDown(way, event.what);
    }
}

void VerbsWire::linkDown(const Way& on, const std::string& why) {
  if (links_[on.peer].down()) return;
  cut(on,
      text("verbs: the link from ", names_[rank_], " to {who} is down: ", why, "; ", on.route()));
  ready_.push_back({.kind = WireEvent::LinkDown, .peer = on.peer});
}

void VerbsWire::sever(std::uint32_t peer) {
  const Link& link = links_[peer];
  if (link.down() || link.rails == 0) return;
  cut(rails_[link.first].way, text("verbs: the link from ", names_[rank_],
                                   " to {who} was cut by this rank; ", describe(peer)));
}

void VerbsWire::cut(const Way& on, std::string what) {
  Link& link = links_[on.peer];
  link.error = Status::error({.code = Code::RemoteError,
                              .who = names_[on.peer],
                              .device = on.port().info.device,
                              .port = on.port().number,
                              .what = std::move(what)});
  anyDown_ = true;
  for (std::uint32_t edge = link.first; edge < link.first + link.rails; ++edge) {
    Rail& rail = rails_[edge];
    handshakes_.end(edge);
    rail.ready = nullptr;
    rail.kept.clear();
    if (rail.connection != nullptr) rail.connection->stop();
  }
}

// What was written last may still be on its way, and would be lost with its queue pair.
void VerbsWire::drain() {
  const auto isDone = [&](const auto& connection) {
    return connection->idle() || links_[connection->way().peer].down();
  };
  const Deadline deadline = Deadline::in(kDrainMs);
  while (!std::ranges::all_of(connections_, isDone) && !deadline.expired()) {
    flushTails();
    if (!gather()) ::sched_yield();
    ready_.clear();
  }
}

}  // namespace weft::verbs
