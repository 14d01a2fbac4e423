// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <utility>

#include "base/deadline.h"
#include "net/channel.h"
#include "net/socket.h"

namespace weft::net {

// A channel over a socket. Not thread-safe.
class Stream {
 public:
  explicit Stream(Socket socket) : socket_(std::move(socket)) {}

  // ---- without blocking ----
  // Hands the socket what it will take of the channel's pending bytes. False here and below: the
  // connection is gone, and only what was received before is of use.
  bool flush();
  // Feeds the channel what has arrived, at most 16 KiB of it.
  bool fill();
  // Why the connection is gone: an errno, or 0 if the peer closed it.
  int error() const { return error_; }
  // What poll(2) should wait for: bytes to read, and room for those that are pending.
  pollfd pollEntry();

  // ---- blocking; Timeout at the deadline, another error if the connection is gone ----
  Status awaitFlushed(Deadline deadline);
  Status awaitMessage(Deadline deadline, Message* message);
  // Sends one message, if the peer takes it until then.
  void tell(MessageType type, Bytes body, Deadline deadline);
  // The same, and waits for the next.
  Status ask(MessageType type, Bytes body, Deadline deadline, Message* answer);

  Channel& channel() { return channel_; }
  const Socket& socket() const { return socket_; }

 private:
  Socket socket_;
  Channel channel_;
  int error_ = 0;
};

}  // namespace weft::net
