// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"
#include "net/address.h"

namespace weft::net {

// A descriptor that stays in this process: a forked child closes its copies at once and its objects
// become empty, so that the other side of a connection sees this process die although a child lives
// on.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd);  // takes it

  int fd() const { return fd_ ? fd_->get() : -1; }
  explicit operator bool() const { return fd() >= 0; }
  void close() { fd_.reset(); }

 private:
  struct Forget {
    void operator()(Fd* fd) const;
  };
  std::unique_ptr<Fd, Forget> fd_;  // at an address that stays, for the list of open sockets
};

// Binds and listens. On success *bound has the port that was chosen if address.port was 0.
// The errno of a failure is in *error, because a caller may know better than to give up.
Status listenAt(const Address& address, Socket* out, Address* bound, int* error);

// Takes one waiting connection, or an empty socket if there is none or if it cannot be taken now
// (then *exhausted is set: no file descriptor or memory left).
Socket acceptFrom(const Socket& listener, Address* peer, bool* exhausted);

// Connects; Timeout at the deadline, else SystemError with its errno in *error.
Status connectTo(const Address& address, Deadline deadline, Socket* out, int* error);

// Is the other end of a connection on this host, too? By the addresses.
bool isWithinHost(const Socket& socket);

// poll(2) on one socket, safe against EINTR. False: the deadline passed.
bool waitReadable(const Socket& socket, Deadline deadline);
bool waitWritable(const Socket& socket, Deadline deadline);

}  // namespace weft::net
