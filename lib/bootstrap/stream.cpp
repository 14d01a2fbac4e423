// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/stream.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace weft {
namespace {

bool wouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

bool Stream::flush() {
  for (ByteView bytes = channel_.pending(); !bytes.empty(); bytes = channel_.pending()) {
    const ssize_t sent = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      channel_.sent(static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      return wouldBlock(errno);
    }
  }
  return true;
}

bool Stream::fill() {
  std::array<std::byte, 16 * 1024> buffer;
  ssize_t got;
  do {
    got = recv(socket_.fd(), buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return wouldBlock(errno);
  channel_.feed(ByteView(buffer).first(static_cast<std::size_t>(got)));
  return got > 0;
}

}  // namespace weft
