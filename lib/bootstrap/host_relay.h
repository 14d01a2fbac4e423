// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/pending_connections.h"
#include "net/ready_set.h"
#include "net/service_threads.h"
#include "net/socket.h"
#include "net/stream.h"

namespace weft::bootstrap {

// Between ranks of a host and whoever all of them would else have a connection to: what those that
// do so have in common, which is connections and when they are served. What is said they know
// themselves. One thread.
class HostRelay {
 public:
  HostRelay(const HostRelay&) = delete;
  HostRelay& operator=(const HostRelay&) = delete;
  // To be asked once, before anything else.
  Status isOpen() const;

 protected:
  // A rank, by a number that its relay gives it.
  using Place = std::uint32_t;
  static constexpr std::int64_t kPartingMs = 300;
  static constexpr std::int64_t kForAgesMs = std::int64_t{24} * 3600 * 1000;

  HostRelay(std::vector<net::Socket> listeners, const net::Key& secret, std::int64_t handshakeMs,
            std::unique_ptr<net::Stream> up);
  virtual ~HostRelay() = default;

  // Takes those that have proved themselves from `pending`.
  virtual void letIn(PendingConnections& pending) = 0;
  virtual void hear(Place place, net::Message message) = 0;
  virtual void passDown(net::Message message) = 0;
  // Of a rank that has not said good-bye: upwards.
  virtual void tellOfLoss(Place place) = 0;
  // To all ranks, that the connection up is lost. It is still there to be asked how.
  virtual void tellCutOff() = 0;
  // Sends what there is, both ways.
  virtual void deliver() = 0;
  // The same limit, or when it has to look up sooner.
  virtual Deadline soonest(Deadline limit) const = 0;

  // Once the connection up is lost: have the ranks heard it?
  bool isParted() const { return ranks_.empty() || parting_->expired(); }
  // `stop` is null once it has been raised.
  void turn(const net::StopSignal* stop, Deadline limit);
  net::Stream& admit(Place place, net::Stream stream);
  void serveUp();
  void serveRank(Place place);
  // What does not go now goes as soon as it can. Both lose who is gone.
  void flushUp();
  void flushRank(Place place);
  void close(Place place);

  std::optional<PendingConnections> pending_;  // while ranks may come
  std::unique_ptr<net::Stream> up_;            // null once it is lost
  std::map<Place, net::Stream> ranks_;
  std::optional<Deadline> parting_;  // it is lost: until when ranks may take to close
  std::set<Place> leaving_;          // have said good-bye
  std::set<Place> told_;             // have something to be sent

 private:
  bool watchFor(net::Stream& stream, std::uint64_t id);
  void wait(const net::StopSignal* stop, Deadline limit);
  void loseRank(Place place);
  void loseUp();

  net::ReadySet ready_;  // by place, and one for the connection up
};

}  // namespace weft::bootstrap
