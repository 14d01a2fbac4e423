// SPDX-License-Identifier: Apache-2.0
// Datagrams between queue pairs, and reads of a peer's memory.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fake.h"

namespace fake {
namespace {

std::uint32_t pidOf(const ibv_gid& gid) {
  std::uint32_t pid = 0;
  std::memcpy(&pid, gid.raw + 8, sizeof(pid));
  return pid;
}

std::string pathOf(const Place& place) {
  return knobs().wire + "/fake-efa-" + std::to_string(pidOf(place.gid)) + "-" +
         std::to_string(place.gid.raw[15]) + "-" + std::to_string(place.queue);
}

// A path, as abstract names end at the network namespace.
sockaddr_un addressOf(const Place& place) {
  sockaddr_un made = {};
  made.sun_family = AF_UNIX;
  pathOf(place).copy(made.sun_path, sizeof(made.sun_path) - 1);
  return made;
}

// A mute queue leaves this file behind, so that its peers know it from one that is gone.
std::string muteMark(const Place& place) { return pathOf(place) + "-mute"; }

Clock::time_point timeout() { return Clock::now() + std::chrono::milliseconds(knobs().timeoutMs); }

void die(Queue& queue) {
  queue.dead = true;
  closeSocket(queue);
  for (const Send& send : queue.backlog) fail(queue, kFlushed, send.work, IBV_WC_SEND, soon());
  for (const Receive& receive : queue.receives)
    fail(queue, kFlushed, receive.work, IBV_WC_RECV, soon());
  queue.backlog.clear();
  queue.receives.clear();
  queue.stash.clear();
}

void muteFrom(Queue& queue) {
  queue.mute = true;
  closeSocket(queue);
  const int mark = ::open(muteMark(queue.place).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (mark >= 0) ::close(mark);
  for (const Send& send : queue.backlog)
    fail(queue, kUnresponsive, send.work, IBV_WC_SEND, timeout());
  queue.backlog.clear();
}

// False: the way is full.
bool transmit(Queue& queue, const Send& send) {
  sockaddr_un to = addressOf(send.to);
  Place source = queue.place;
  iovec parts[] = {{&source, sizeof(source)},
                   {const_cast<std::byte*>(send.bytes.data()), send.bytes.size()}};
  msghdr message = {};
  message.msg_name = &to;
  message.msg_namelen = sizeof(to);
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (::sendmsg(queue.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
    queue.completions->done.push_back({kWell, send.work, IBV_WC_SEND, 0, {}, soon()});
    ++queue.sent;
    return true;
  }
  if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) return false;
  const bool mute = ::access(muteMark(send.to).c_str(), F_OK) == 0;
  fail(queue, mute ? kUnresponsive : kNoSuchQueue, send.work, IBV_WC_SEND,
       mute ? timeout() : soon());
  return true;
}

// No more than the disorder that a network has: the provider gives up on a message that 16384 later
// ones overtake. What stays in the socket holds the senders up.
void drain(Queue& queue) {
  constexpr std::size_t kMostInDisorder = 256;
  std::byte buffer[sizeof(Place) + kMtu];
  while (queue.stash.size() < kMostInDisorder) {
    const ssize_t got = ::recv(queue.socket, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(sizeof(Place))) return;
    Datagram arrived;
    std::memcpy(&arrived.source, buffer, sizeof(Place));
    arrived.bytes.assign(buffer + sizeof(Place), buffer + got);
    arrived.ready = soon();
    queue.stash.push_back(std::move(arrived));
  }
}

}  // namespace

int openSocket(const Place& place) {
  const sockaddr_un name = addressOf(place);
  if (pathOf(place) != name.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int room = 4 << 20;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  ::unlink(name.sun_path);  // of a process that was killed and had this id
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) return socket;
  ::close(socket);
  return -1;
}

void closeSocket(Queue& queue) {
  if (queue.socket < 0) return;
  ::unlink(pathOf(queue.place).c_str());
  ::close(queue.socket);
  queue.socket = -1;
}

void fail(Queue& queue, Fate fate, std::uint64_t work, ibv_wc_opcode opcode,
          Clock::time_point when) {
  queue.completions->done.push_back({fate, work, opcode, 0, {}, when});
}

void launch(Queue& queue, Send&& send) {
  const Knobs& all = knobs();
  if (all.dieAfter != 0 && queue.sent >= all.dieAfter && !queue.dead) die(queue);
  if (all.muteAfter != 0 && queue.sent >= all.muteAfter && !queue.mute) muteFrom(queue);
  if (queue.dead) return fail(queue, kFlushed, send.work, IBV_WC_SEND, soon());
  if (queue.mute) return fail(queue, kUnresponsive, send.work, IBV_WC_SEND, timeout());
  if (chance(all.notReady)) return fail(queue, kNotReady, send.work, IBV_WC_SEND, soon());
  if (!transmit(queue, send)) queue.backlog.push_back(std::move(send));
}

void pump(Queue& queue) {
  if (queue.socket < 0) return;
  drain(queue);
  std::erase_if(queue.backlog, [&](const Send& send) { return transmit(queue, send); });
}

void readRemote(Queue& queue, const Read& read) {
  std::vector<iovec> into;
  std::size_t bytes = 0;
  for (const ibv_sge& piece : read.into) {
    into.push_back({reinterpret_cast<void*>(piece.addr), piece.length});
    bytes += piece.length;
  }
  const iovec from = {reinterpret_cast<void*>(read.address), bytes};
  const bool gone = queue.dead || queue.mute;
  const ssize_t got = gone ? -1
                           : ::process_vm_readv(static_cast<pid_t>(pidOf(read.from.gid)),
                                                into.data(), into.size(), &from, 1, 0);
  const bool well = got == static_cast<ssize_t>(bytes);
  // The provider of 1.17 knows reads by their work alone.
  fail(queue, well ? kWell : kBadAddress, read.work, IBV_WC_SEND, soon());
}

}  // namespace fake
