// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/root_service.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "bootstrap/admission.h"
#include "bootstrap/fd_limit.h"
#include "bootstrap/service_threads.h"
#include "bootstrap/stranger_log.h"
#include "bootstrap/stream.h"

namespace weft {
namespace {

constexpr std::int64_t kGoodbyeMs = 300;

struct Connection {
  Connection(Socket socket, const Address& from, Deadline handshakeLimit, const Admission& fresh)
      : stream(std::move(socket)), peer(from), limit(handshakeLimit), admission(fresh) {}

  Stream stream;
  Address peer;
  Deadline limit;  // of the handshake
  Admission admission;
  std::optional<Meeting::Seat> seat;  // once a member
  bool stranger() const { return !seat && !admission.proven(); }
  bool open = true;
  bool ready = true;  // poll(2) has something, or nobody has asked it yet
};

class RootService {
 public:
  RootService(std::vector<Socket> listeners, const Key& secret, const RootOptions& options)
      : listeners_(std::move(listeners)),
        secret_(secret),
        options_(options),
        meeting_(options.timing),
        end_(Deadline::in(options.unusedMs)) {
    introduction_.host = hostName();
    introduction_.pid = static_cast<std::int32_t>(getpid());
  }

  void run(const StopSignal& stop) {
    while (!finished() && !(stop.raised() && handedOver())) {
      wait(stop);
      acceptWaiting();
      for (Connection& connection : connections_) {
        if (connection.ready) serve(connection);
      }
      dropTheSlow();
      meeting_.tick();
      deliver();
      sweep();
    }
    strangers_.report();
  }

 private:
  bool finished() const;
  bool handedOver();
  void wait(const StopSignal& stop);
  Deadline nextWake() const;
  void acceptWaiting();
  void makeRoom();
  void serve(Connection& connection);
  void handle(Connection& connection, const Message& message);
  void seat(Connection& connection, Admission::Guest guest);
  void drop(Connection& connection, std::string_view why);
  void dropTheSlow();
  void deliver();
  void sweep();
  std::size_t strangersNow() const;

  std::vector<Socket> listeners_;
  Key secret_;
  RootOptions options_;
  Challenge introduction_;
  Meeting meeting_;
  Deadline end_;                         // while nobody is here
  std::optional<Deadline> acceptAgain_;  // set while connections cannot be taken
  std::optional<Deadline> goodbye_;      // set once the process exits
  std::list<Connection> connections_;
  StrangerLog strangers_;
};

bool RootService::finished() const {
  if (meeting_.empty()) return end_.expired();
  const bool nobodyHere = std::none_of(connections_.begin(), connections_.end(),
                                       [](const Connection& c) { return c.seat.has_value(); });
  if (meeting_.verdict().ok()) return meeting_.complete() && nobodyHere;
  return end_.expired() || (nobodyHere && meeting_.everybodyCame());
}

// Nobody waits for bytes that are queued here, and nobody is still to come who should hear why the
// meeting failed; or not for long enough to hold up an exiting process.
bool RootService::handedOver() {
  if (!goodbye_) goodbye_ = Deadline::in(kGoodbyeMs);
  if (goodbye_->expired()) return true;
  return (meeting_.verdict().ok() || meeting_.everybodyCame()) &&
         std::all_of(connections_.begin(), connections_.end(),
                     [](Connection& c) { return c.stream.channel().pending().empty(); });
}

std::size_t RootService::strangersNow() const {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                [](const Connection& c) { return c.stranger(); }));
}

Deadline RootService::nextWake() const {
  Deadline wake = meeting_.nextTick();
  if (meeting_.empty() || !meeting_.verdict().ok()) wake = wake.orSooner(end_);
  if (acceptAgain_) wake = wake.orSooner(*acceptAgain_);
  if (goodbye_) wake = wake.orSooner(*goodbye_);
  for (const Connection& connection : connections_) {
    if (connection.stranger()) wake = wake.orSooner(connection.limit);
  }
  return wake;
}

// Sleeps until a socket or the clock has something for us.
void RootService::wait(const StopSignal& stop) {
  std::vector<pollfd> entries;
  if (!stop.raised()) entries.push_back({stop.fd(), POLLIN, 0});
  if (acceptAgain_ && acceptAgain_->expired()) acceptAgain_.reset();
  if (!acceptAgain_) {
    for (const Socket& listener : listeners_) entries.push_back({listener.fd(), POLLIN, 0});
  }
  for (Connection& connection : connections_) {
    const bool writes = !connection.stream.channel().pending().empty();
    entries.push_back({connection.stream.socket().fd(),
                       static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const std::size_t others = entries.size() - connections_.size();
  const int ready = poll(entries.data(), entries.size(), nextWake().pollTimeoutMs());
  auto entry = entries.begin() + static_cast<std::ptrdiff_t>(others);
  for (Connection& connection : connections_)
    connection.ready = ready > 0 && (entry++)->revents != 0;
}

void RootService::acceptWaiting() {
  if (acceptAgain_) return;
  for (const Socket& listener : listeners_) {
    // Bounded, so that a flood of strangers does not keep us from our members.
    for (std::size_t i = 0; i < kMaxStrangers; ++i) {
      Address peer;
      bool exhausted = false;
      Socket socket = acceptFrom(listener, &peer, &exhausted);
      if (exhausted) {
        // Ranks that are threads of this process may have taken the last descriptors before the
        // first of them could be let in. Where the hard limit is reached, only waiting helps.
        (void)reserveFds(kMaxStrangers);
        acceptAgain_ = Deadline::in(20);
      }
      if (!socket) break;
      makeRoom();
      connections_.emplace_back(std::move(socket), peer, Deadline::in(options_.handshakeMs),
                                Admission(secret_, introduction_));
    }
  }
}

// Drops the oldest stranger once there are too many; rather one that has not even named our id.
void RootService::makeRoom() {
  if (strangersNow() < kMaxStrangers) return;
  auto victim = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    if (!it->stranger() || !it->open) continue;
    if (victim == connections_.end()) victim = it;
    if (!it->admission.knowsOurId()) {
      victim = it;
      break;
    }
  }
  if (victim == connections_.end()) return;
  drop(*victim, "too many at once");
  connections_.erase(victim);
}

void RootService::serve(Connection& connection) {
  const bool alive = connection.stream.fill();
  while (connection.open) {
    std::optional<Message> message;
    const Status read = connection.stream.channel().next(&message);
    if (!read.ok()) return drop(connection, read.text());
    if (!message) break;
    handle(connection, *message);
  }
  if (!connection.open) return;
  if (!alive || !connection.stream.flush()) drop(connection, "it closed the connection");
}

void RootService::dropTheSlow() {
  for (Connection& connection : connections_) {
    if (!connection.stranger() || !connection.open || !connection.limit.expired()) continue;
    drop(connection, "it did not finish the handshake");
  }
}

void RootService::handle(Connection& connection, const Message& message) {
  if (!connection.seat) {
    std::optional<Admission::Guest> guest;
    const Status admitted =
        connection.admission.handle(message, &connection.stream.channel(), &guest);
    if (!admitted.ok()) return drop(connection, admitted.text());
    if (guest) seat(connection, std::move(*guest));
    return;
  }
  GatherMessage part;
  Status failure;
  if (message.type == MessageType::Bye) {
    meeting_.leave(*connection.seat);
  } else if (message.type == MessageType::Gather && decode(message.body, &part)) {
    meeting_.gather(*connection.seat, std::move(part));
  } else if (message.type == MessageType::Failed && decode(message.body, &failure)) {
    meeting_.fail(*connection.seat, failure);
  }
}

void RootService::seat(Connection& connection, Admission::Guest guest) {
  if (meeting_.complete()) return drop(connection, "it came after the communicator was complete");
  const auto ranks = static_cast<std::uint64_t>(std::max(guest.member.hello.size, 1));
  const bool first = meeting_.empty();
  connection.seat = meeting_.join(std::move(guest.member), Deadline::in(guest.patienceMs));
  if (!meeting_.verdict().ok()) {  // it may have been told to the others long ago
    connection.stream.channel().send(MessageType::Verdict, encode(meeting_.verdict()));
    end_ = Deadline::in(options_.lingerMs);
  } else if (first) {
    const Status room = reserveFds(ranks + kMaxStrangers);
    if (!room.ok()) meeting_.fail(*connection.seat, room);
  }
}

void RootService::drop(Connection& connection, std::string_view why) {
  connection.open = false;
  if (connection.seat) {
    meeting_.lose(*connection.seat);
  } else {
    (void)connection.stream.flush();  // a refusal may be waiting
    strangers_.note(connection.peer, connection.stream.channel().unread(), why);
  }
}

void RootService::deliver() {
  // Closed before anybody hears that we are complete: the next meeting may want the same address.
  if (meeting_.complete()) listeners_.clear();
  while (auto broadcast = meeting_.takeBroadcast()) {
    for (Connection& connection : connections_) {
      if (!connection.seat || !connection.open) continue;
      connection.stream.channel().send(broadcast->type, broadcast->body);
    }
    if (broadcast->type == MessageType::Verdict) end_ = Deadline::in(options_.lingerMs);
  }
  for (Connection& connection : connections_) {
    if (connection.open && !connection.stream.flush()) drop(connection, "it closed the connection");
  }
}

void RootService::sweep() {
  std::erase_if(connections_,
                [&](const Connection& c) { return !c.open || (meeting_.complete() && !c.seat); });
}

}  // namespace

Status startRoot(std::vector<Socket> listeners, const Key& secret, const RootOptions& options) {
  auto service = std::make_shared<RootService>(std::move(listeners), secret, options);
  return ServiceThreads::get().start("weft-root",
                                     [service](const StopSignal& stop) { service->run(stop); });
}

}  // namespace weft
