// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "bootstrap/channel.h"
#include "bootstrap/socket.h"

namespace weft {

// A channel over a socket. Neither call blocks; false means that the connection is gone (closed by
// the peer or broken), after which only what was received before is of use. Not thread-safe.
class Stream {
 public:
  explicit Stream(Socket socket) : socket_(std::move(socket)) {}

  // Hands the socket what it will take of the channel's pending bytes.
  bool flush();
  // Feeds the channel what has arrived, at most 16 KiB of it.
  bool fill();

  Channel& channel() { return channel_; }
  const Socket& socket() const { return socket_; }
  void close() { socket_.close(); }

 private:
  Socket socket_;
  Channel channel_;
};

}  // namespace weft
