// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/mark.h"

namespace weft::net {
namespace {

bool wouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

Status closedByPeer() { return Status::error(Code::RemoteError, "the connection was closed"); }

Status silent() {
  return Status::error(Code::Timeout, "it accepts connections but does not answer");
}

}  // namespace

bool Stream::flush() {
  for (ByteView bytes = channel_.pending(); !bytes.empty(); bytes = channel_.pending()) {
    const ssize_t sent = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      channel_.sent(static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      error_ = errno;
      return wouldBlock(error_);
    }
  }
  return true;
}

bool Stream::fill() {
  std::array<std::byte, 16 * 1024> buffer;
  ssize_t got;
  do {
    got = recv(socket_.fd(), buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR && WEFT_MARK("net: recv again"));
  error_ = got < 0 ? errno : 0;
  if (got < 0) return wouldBlock(error_);
  channel_.feed(ByteView(buffer).first(static_cast<std::size_t>(got)));
  return got > 0;
}

pollfd Stream::pollEntry() {
  const bool writes = !channel_.pending().empty();
  return {socket_.fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0};
}

Status Stream::awaitFlushed(Deadline deadline) {
  while (flush()) {
    if (channel_.pending().empty()) return {};
    if (!waitWritable(socket_, deadline)) return silent();
  }
  return closedByPeer();
}

Status Stream::awaitMessage(Deadline deadline, Message* message) {
  for (bool alive = true;; alive = fill()) {
    std::optional<Message> next;
    WEFT_TRY(channel_.next(&next));
    if (next) {
      *message = std::move(*next);
      return {};
    }
    if (!alive) return closedByPeer();
    if (!waitReadable(socket_, deadline)) return silent();
  }
}

// A connection that takes nothing more may still hold the message that explains it. The peer need not
// wait for what will not come.
void Stream::tell(MessageType type, Bytes body, Deadline deadline) {
  channel_.send(type, std::move(body));
  if (!awaitFlushed(deadline).ok()) ::shutdown(socket_.fd(), SHUT_WR);
}

Status Stream::ask(MessageType type, Bytes body, Deadline deadline, Message* answer) {
  tell(type, std::move(body), deadline);
  return awaitMessage(deadline, answer);
}

}  // namespace weft::net
