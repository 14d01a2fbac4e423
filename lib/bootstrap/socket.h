// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/address.h"

namespace weft {

// A TCP socket that this process owns: non-blocking, close-on-exec, closed with the object. A
// forked child closes its copies at once and its objects become empty, so that the death of this
// process is seen by the other side although a child lives on.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

// Binds and listens. On success *bound has the port that was chosen if address.port was 0.
// The errno of a failure is in *error, because a caller may know better than to give up.
Status listenAt(const Address& address, Socket* out, Address* bound, int* error);

// Takes one waiting connection, or an empty socket if there is none or if it cannot be taken now
// (then *exhausted is set: no file descriptor or memory left).
Socket acceptFrom(const Socket& listener, Address* peer, bool* exhausted);

// Connects; Timeout at the deadline, else SystemError with its errno in *error.
Status connectTo(const Address& address, Deadline deadline, Socket* out, int* error);

// poll(2) on one socket, safe against EINTR. False: the deadline passed.
bool waitReadable(const Socket& socket, Deadline deadline);
bool waitWritable(const Socket& socket, Deadline deadline);

}  // namespace weft
