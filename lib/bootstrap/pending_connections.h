// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/admission.h"
#include "net/ready_set.h"
#include "net/rejection_log.h"
#include "net/socket.h"
#include "net/stream.h"

namespace weft::bootstrap {

// Connections that are not authenticated yet. What fails the handshake costs its connection and the
// log one line a minute, whatever it sends or does not send; at most kMaxUnauthenticated and kMaxNamed stay at
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
  PendingConnections(const PendingConnections&) = delete;
  PendingConnections& operator=(const PendingConnections&) = delete;

  Status isOpen() const { return ready_.isOpen(); }
  // For poll(2): readable once somebody has something to say; and until when to wait.
  int fd() const { return ready_.fd(); }
  Deadline nextWake() const;
  // Never blocks; gives back those that have been authenticated since.
  std::vector<Authenticated> serve();
  // Ranks that were lost since they had proved themselves, before their Info.
  std::vector<std::int32_t> takeLost() { return std::exchange(lost_, {}); }
  // They may come again.
  void dropAll();
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
    bool ready = true;  // to be read
    bool unauthenticated() const { return !admission.proven(); }
  };
  void listen(bool now);
  void acceptWaiting();
  void makeRoom();
  void end(Connection& connection);
  void serve(Connection& connection);
  void drop(Connection& connection, std::string_view why);

  std::vector<net::Socket> listeners_;
  const net::Key secret_;
  const std::int64_t handshakeMs_;
  std::optional<Deadline> acceptAgain_;  // set while connections cannot be taken
  net::ReadySet ready_;                  // by the connection's address; a listener's is 0
  std::list<Connection> connections_;
  std::vector<std::int32_t> lost_;
  net::RejectionLog log_;
};

}  // namespace weft::bootstrap
