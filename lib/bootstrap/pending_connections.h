// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/admission.h"
#include "net/rejection_log.h"
#include "net/socket.h"
#include "net/stream.h"

namespace weft::bootstrap {

// Connections that are not authenticated yet. What fails the handshake costs its connection and the
// log one line a minute, whatever it sends or does not send; at most kMaxUnauthenticated stay at
// once. One thread.
class PendingConnections {
 public:
  struct Authenticated {
    net::Stream stream;
    Member member;
  };

  PendingConnections(std::vector<net::Socket> listeners, const net::Key& secret,
                     std::int64_t handshakeMs);
  ~PendingConnections() { close(); }

  // What poll(2) should wait for, and until when.
  void addTo(std::vector<pollfd>* entries) const;
  Deadline nextWake() const;
  // Never blocks; gives back those that have been authenticated since.
  std::vector<Authenticated> serve();
  // Ranks that were lost since they had proved themselves, before their Info.
  std::vector<std::int32_t> takeLost() { return std::exchange(lost_, {}); }
  // Takes nobody any more.
  void close();

 private:
  struct Connection {
    net::Stream stream;
    net::Address peer;
    Deadline limit;  // of the handshake
    Admission admission;
    std::optional<Member> admitted;
    bool open = true;
    bool unauthenticated() const { return !admission.proven(); }
  };
  void acceptWaiting();
  void makeRoom();
  void serve(Connection& connection);
  void drop(Connection& connection, std::string_view why);

  std::vector<net::Socket> listeners_;
  const net::Key secret_;
  const std::int64_t handshakeMs_;
  std::optional<Deadline> acceptAgain_;  // set while connections cannot be taken
  std::list<Connection> connections_;
  std::vector<std::int32_t> lost_;
  net::RejectionLog log_;
};

}  // namespace weft::bootstrap
