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
    : names_(setup.names), rank_(setup.rank), regions_(setup.regions), links_(setup.ranks) {}

VerbsWire::~VerbsWire() { drain(); }

Domain& VerbsWire::add(std::unique_ptr<Domain> domain) {
  domains_.push_back(std::move(domain));
  return *domains_.back();
}

void VerbsWire::add(std::unique_ptr<Connection> connection, std::size_t maxMessage) {
  maxWrite_ = std::min(maxWrite_, maxMessage);
  links_[connection->peer()].connections.push_back(connection.get());
  connections_.push_back(std::move(connection));
  ready_.reserve(ready_.capacity() + 2 * Connection::kDepth);
}

Status VerbsWire::verify(Deadline deadline) {
  for (const auto& connection : connections_)
    if (const int error = connection->post({.peer = connection->peer(), .immediate = rank_}))
      return Status::error(Code::SystemError, "verbs: cannot post on ", connection->route(), ": ",
                           std::strerror(error));
  while (!isVerified()) {
    const bool late = deadline.expired();
    if (!gather()) lookAround();
    for (const auto& connection : connections_)
      if (late || links_[connection->peer()].down())
        WEFT_TRY(verificationOf(*connection, late ? Code::Timeout : Code::SystemError));
    if (idlePolls_ != 0) ::sched_yield();
  }
  for (const WireEvent& event : ready_)
    if (event.kind == WireEvent::RemoteCompletion && event.immediate != event.peer)
      return Status::error(Code::InternalError, "verbs: the connection to ", names_[event.peer],
                           " (", describe(event.peer), ") leads to rank ", event.immediate);
  ready_.clear();
  return {};
}

bool VerbsWire::isVerified() const {
  return std::ranges::all_of(connections_,
                             [](const auto& one) { return one->polled() != 0 && one->idle(); });
}

// An error if it is not.
Status VerbsWire::verificationOf(const Connection& connection, Code code) const {
  const Link& link = links_[connection.peer()];
  const bool heard = connection.polled() != 0;
  if (heard && connection.idle() && !link.down()) return {};
  const std::string why = link.down() ? link.error.message()
                          : heard     ? "what was sent is not acknowledged"
                                      : "nothing has come over it";
  return Status::error({.code = code,
                        .who = names_[connection.peer()],
                        .device = connection.device(),
                        .port = connection.port(),
                        .what = text("verbs: the edge between ", names_[rank_], " and {who} (",
                                     connection.route(), ") does not carry bytes: ", why)});
}

std::string VerbsWire::describe(std::uint32_t peer) const {
  std::string words = "verbs";
  const char* before = ", ";
  for (const Connection* connection : links_[peer].connections) {
    words += text(before, connection->route(), ", MTU ", connection->mtu());
    before = " + ";
  }
  return words;
}

bool VerbsWire::sendsFrom(const std::byte* memory, std::size_t bytes) const {
  return std::ranges::any_of(regions_,
                             [&](const auto& region) { return contains(region, memory, bytes); });
}

const char* VerbsWire::faultOf(const WireWrite& write) const {
  if (write.peer >= links_.size()) return "there is no such rank";
  const Link& link = links_[write.peer];
  if (write.rail >= link.connections.size()) return "there is no such rail";
  if (write.bytes > maxWrite_) return "it is longer than a write may be";
  if (!link.connections[write.rail]->fits(write)) return "its target is outside of the region";
  if (write.bytes != 0 && !sendsFrom(write.src, write.bytes)) return "its source is not registered";
  return nullptr;
}

WireResult VerbsWire::fail(Status why) {
  lastError_ = std::move(why);
  return WireResult::Failed;
}

WireResult VerbsWire::write(const WireWrite& write) {
  if (const char* const fault = faultOf(write)) [[unlikely]]
    return fail(refusal("verbs", write, fault));
  const Link& link = links_[write.peer];
  if (link.down()) [[unlikely]]
    return fail(link.error);
  Connection& connection = *link.connections[write.rail];
  if (connection.full()) return WireResult::Again;
  const int error = connection.post(write);
  tails_ |= write.quiet;
  if (error == 0) return WireResult::Accepted;
  if (error == ENOMEM) return WireResult::Again;
  linkDown(write.peer, connection, text("cannot post a write: ", std::strerror(error)));
  return fail(link.error);
}

// Ends with a LinkDown, so that lastError() is about that one.
int VerbsWire::poll(WireEvent* out, int max) {
  if (next_ == ready_.size()) {
    ready_.clear();
    next_ = 0;
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

// What has come before the queues were to notify is looked for afterwards.
bool VerbsWire::arm(std::vector<pollfd>* descriptors) {
  if (tails_) flushTails();
  bool armed = true;
  for (const auto& domain : domains_) {
    takeEvents(domain->device());
    armed &= domain->notify();
    descriptors->push_back({domain->descriptor(), POLLIN, 0});
    descriptors->push_back({domain->device().context()->async_fd, POLLIN, 0});
  }
  return armed && !gather() && next_ == ready_.size();
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
  const std::uint32_t peer = connection.peer();
  if (links_[peer].down()) return;
  if (completion.status != IBV_WC_SUCCESS) return takeError(connection, completion);
  if ((completion.wr_id & Connection::kReceive) == 0) {
    connection.complete(completion.wr_id, [&](std::uint64_t cookie) {
      ready_.push_back({.kind = WireEvent::Sent, .peer = peer, .cookie = cookie});
    });
    return;
  }
  ready_.push_back(
      {.kind = WireEvent::RemoteCompletion, .peer = peer, .immediate = ntohl(completion.imm_data)});
  if (const int error = connection.renew())
    linkDown(peer, connection, text("cannot post receives: ", std::strerror(error)));
}

// An event, if there is one, says more: that the port went down.
void VerbsWire::takeError(const Connection& connection, const ibv_wc& completion) {
  takeEvents(connection.domain().device());
  linkDown(connection.peer(), connection,
           text(connection.domain().verbs().wc_status_str(completion.status), " (status ",
                static_cast<int>(completion.status), ", vendor error ", completion.vendor_err,
                ", queue pair ", connection.number(), ")"));
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
    if (!connection->wantsFlush() || links_[connection->peer()].down()) continue;
    tails_ |= connection->full() || connection->flush() != 0;
  }
}

void VerbsWire::takeEvents(const Device& device) {
  for (DeviceEvent event; nextEvent(device, &event);)
    for (const auto& connection : connections_) {
      if (&connection->domain().device() != &device) continue;
      if (event.port != 0 && event.port != connection->port()) continue;
      if (event.connection != nullptr && event.connection != connection.get()) continue;
      linkDown(connection->peer(), *connection, event.what);
    }
}

void VerbsWire::linkDown(std::uint32_t peer, const Connection& on, const std::string& why) {
  if (links_[peer].down()) return;
  cut(peer, on,
      text("verbs: the link from ", names_[rank_], " to {who} is down: ", why, "; ", on.route()));
  ready_.push_back({.kind = WireEvent::LinkDown, .peer = peer});
}

void VerbsWire::sever(std::uint32_t peer) {
  const Link& link = links_[peer];
  if (link.down() || link.connections.empty()) return;
  cut(peer, *link.connections[0],
      text("verbs: the link from ", names_[rank_], " to {who} was cut by this rank; ",
           describe(peer)));
}

void VerbsWire::cut(std::uint32_t peer, const Connection& on, std::string what) {
  Link& link = links_[peer];
  link.error = Status::error({.code = Code::RemoteError,
                              .who = names_[peer],
                              .device = on.device(),
                              .port = on.port(),
                              .what = std::move(what)});
  for (Connection* connection : link.connections) connection->stop();
}

// What was written last may still be on its way, and would be lost with its queue pair.
void VerbsWire::drain() {
  const auto isDone = [&](const auto& connection) {
    return connection->idle() || links_[connection->peer()].down();
  };
  const Deadline deadline = Deadline::in(kDrainMs);
  while (!std::ranges::all_of(connections_, isDone) && !deadline.expired()) {
    flushTails();
    if (!gather()) ::sched_yield();
    ready_.clear();
  }
}

}  // namespace weft::verbs
