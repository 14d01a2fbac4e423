// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/fd_exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "base/mark.h"
#include "base/text.h"
#include "transports/shm/receive.h"

namespace weft::shm {
namespace {

constexpr int kTickMs = 100;  // how often silent peers are checked

// The one message of each side.
struct Hello {
  std::uint32_t magic = kWindowMagic;
  std::uint32_t rank = 0;
  Token secret = {};         // of the one that is spoken to
  std::uint8_t present = 0;  // bit i: descriptor i is attached
};

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// Abstract (leading zero byte): no file, gone with its socket.
Address addressOf(const Token& token) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name("\0weft-", 6);
  for (const std::byte byte : token) {
    name += kDigits[std::to_integer<unsigned>(byte) >> 4];
    name += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

Status socketError(const std::string& doing) {
  const int error = errno;
  const bool full = error == EMFILE || error == ENFILE;
  return Status::error(Code::SystemError, "shm transport: ", doing, ": ", std::strerror(error),
                       full ? "; fix: raise the limit of open files (ulimit -n)" : "");
}

Fd newSocket() { return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

bool connectTo(int socket, const Token& token) {
  const Address to = addressOf(token);
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&to.name), to.bytes) == 0;
}

// The peer's pid, or -1 with errno: EPERM if it does not run as our user.
pid_t trustedPid(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return -1;
  errno = EPERM;
  return peer.uid == ::geteuid() ? peer.pid : -1;
}

// A message that is one hello and descriptors.
struct Envelope {
  explicit Envelope(Hello* hello) : data{hello, sizeof(Hello)} {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;

  alignas(cmsghdr) std::byte control[CMSG_SPACE(kDescriptors * sizeof(int))] = {};
  iovec data;
  msghdr message{};
};

bool sendHello(int socket, Hello hello, const Descriptors& mine) {
  std::array<int, kDescriptors> fds{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kDescriptors; ++i) {
    if (!mine[i]) continue;
    fds[count++] = mine[i].get();
    hello.present = static_cast<std::uint8_t>(hello.present | 1u << i);
  }
  Envelope envelope(&hello);
  msghdr& message = envelope.message;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(hello);
}

struct Received {
  Hello hello;
  Descriptors descriptors;
  bool cut = false;  // descriptors were lost: our table is full
};

// Takes hold of all descriptors that came, wanted or not, so that none leaks.
std::vector<Fd> takeDescriptors(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

// The number of bytes received, 0 when the peer has hung up, -1 with errno.
ssize_t receiveHello(int socket, Received* received) {
  Envelope envelope(&received->hello);
  msghdr& message = envelope.message;
  const ssize_t bytes = receiveMessage(socket, &message);
  if (bytes <= 0) return bytes;
  std::vector<Fd> fds = takeDescriptors(message);
  received->cut = (message.msg_flags & MSG_CTRUNC) != 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < kDescriptors; ++i)
    if ((received->hello.present & 1u << i) != 0 && next < fds.size())
      received->descriptors[i] = std::move(fds[next++]);
  return bytes;
}

bool transient(int error) {
  return error == EAGAIN || error == EINTR || error == ETOOMANYREFS || error == ENOBUFS;
}

}  // namespace

Status FdExchange::open(const PeerInfo& mine) {
  info_ = mine;
  listener_ = newSocket();
  if (!listener_) return socketError("cannot make a socket");
  const Address here = addressOf(mine.token);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&here.name), here.bytes) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0)
    return socketError("cannot listen on an abstract UNIX socket");
  return {};
}

Status FdExchange::meet(const std::vector<PeerInfo>& infos, const Descriptors& mine,
                        Deadline deadline, std::vector<std::optional<PeerHandles>>* handles) {
  infos_ = &infos;
  mine_ = &mine;
  handles_ = handles;
  handles->resize(infos.size());
  Status result;
  while (result.ok() && !complete()) {
    bool busy = false;  // somebody could not take what we have: try again soon
    while (result.ok() && !busy && nextCall_ < info_.rank) result = call(nextCall_, &busy);
    if (result.ok()) result = acceptAll();
    for (Link& link : links_)
      if (result.ok() && !link.finished()) result = serve(link, &busy);
    std::erase_if(links_, [](const Link& link) { return link.finished(); });
    if (result.ok() && !complete()) result = wait(busy, deadline);
  }
  links_.clear();
  listener_.reset();
  return result;
}

Status FdExchange::call(std::uint32_t peer, bool* busy) {
  const PeerInfo& info = (*infos_)[peer];
  Link link{.socket = newSocket(), .peer = peer, .known = true};
  if (!link.socket) return socketError(text("cannot make a socket to ", nameOf(info)));
  if (!connectTo(link.socket.get(), info.token)) {
    *busy = transient(errno);
    if (*busy && WEFT_MARK("shm: a peer is called again")) return {};
    return ended(peer, text("does not answer: ", std::strerror(errno),
                            "; it has failed or ended during set-up"));
  }
  link.pid = trustedPid(link.socket.get());
  if (link.pid < 0) return socketError(text("cannot see that our user runs ", nameOf(info)));
  links_.push_back(std::move(link));
  ++nextCall_;
  return {};
}

// Foreign callers are no error, or anybody could stop a job: they are hung up on.
Status FdExchange::acceptAll() {
  for (;;) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket && (errno == EINTR || errno == ECONNABORTED) && WEFT_MARK("shm: accept again"))
      continue;
    if (!socket) return errno == EAGAIN ? Status() : socketError("cannot accept a peer");
    const pid_t pid = trustedPid(socket.get());
    if (pid >= 0 && links_.size() < 2 * infos_->size() + 16)
      links_.push_back(Link{.socket = std::move(socket), .pid = pid});
  }
}

Status FdExchange::serve(Link& link, bool* busy) {
  if (!link.known) WEFT_TRY(hear(link));  // a caller speaks first
  if (link.known && !link.told) WEFT_TRY(tell(link, busy));
  if (link.told && !link.heard) WEFT_TRY(hear(link));
  return {};
}

Status FdExchange::tell(Link& link, bool* busy) {
  Hello hello;
  hello.rank = info_.rank;
  hello.secret = (*infos_)[link.peer].secret;
  if (sendHello(link.socket.get(), hello, *mine_)) {
    link.told = true;
  } else if (transient(errno)) {
    *busy = true;
  } else if (errno == EPIPE || errno == ECONNRESET) {
    return hungUp(link.peer);
  } else {
    return socketError(text("cannot send to ", nameOf((*infos_)[link.peer])));
  }
  return {};
}

Status FdExchange::hear(Link& link) {
  Received received;
  const ssize_t bytes = receiveHello(link.socket.get(), &received);
  if (bytes < 0 && transient(errno)) return {};
  const Hello& hello = received.hello;
  const bool sound = bytes == sizeof(Hello) && hello.magic == kWindowMagic &&
                     hello.secret == info_.secret && hello.rank < infos_->size() &&
                     (link.known ? hello.rank == link.peer : hello.rank > info_.rank);
  if (!sound && !link.known && WEFT_MARK("shm: a foreign caller is hung up on")) {
    link.socket.reset();
    return {};
  }
  if (!sound) return hungUp(link.peer);
  if (received.cut || !received.descriptors[kMemory])
    return Status::error(Code::SystemError, "shm transport: descriptors from ",
                         nameOf((*infos_)[hello.rank]),
                         received.cut ? " were lost" : " lack its memory",
                         "; fix: raise the limit of open files (ulimit -n)");
  admit(link, hello.rank, std::move(received.descriptors));
  return {};
}

Status FdExchange::ended(std::uint32_t peer, const std::string& how) const {
  return Status::error({.code = Code::RemoteError,
                        .who = nameOf((*infos_)[peer]),
                        .what = "shm transport: {who} " + how});
}

Status FdExchange::hungUp(std::uint32_t peer) const {
  return ended(peer, "hung up; it has failed or ended during set-up");
}

void FdExchange::admit(Link& link, std::uint32_t peer, Descriptors descriptors) {
  link.peer = peer;
  link.known = true;
  link.heard = true;
  (*handles_)[peer] = PeerHandles{link.pid, std::move(descriptors)};
}

bool FdExchange::complete() const {
  const auto owing = [](const Link& link) { return link.known; };
  if (nextCall_ < info_.rank || std::ranges::any_of(links_, owing)) return false;
  for (std::uint32_t peer = 0; peer < infos_->size(); ++peer)
    if (peer != info_.rank && !(*handles_)[peer]) return false;
  return true;
}

Status FdExchange::late() const {
  ErrorData data{.code = Code::Timeout};
  data.what = "shm transport: no shared memory in time from ";
  data.fix = "see why they hang, or a longer WEFT_INIT_TIMEOUT_MS";
  for (const PeerInfo& info : *infos_) {
    if (info.rank == info_.rank || (*handles_)[info.rank]) continue;
    data.what += text(data.missing.empty() ? "" : ", ", nameOf(info));
    if (data.missing.empty()) data.who = nameOf(info);
    data.missing.push_back(info.rank);
  }
  return Status::error(std::move(data));
}

Status FdExchange::wait(bool busy, Deadline deadline) {
  if (deadline.expired()) return late();
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const Link& link : links_) entries.push_back({link.socket.get(), POLLIN, 0});
  const int most = busy ? 1 : kTickMs;
  const int ready =
      ::poll(entries.data(), entries.size(), std::min(most, deadline.pollTimeoutMs()));
  return ready == 0 && !busy ? checkMissing() : Status();
}

// Higher ranks call us; one that has not and no longer listens never will, unless its word has come
// since we looked for it: so it must be missed twice.
Status FdExchange::checkMissing() {
  for (std::uint32_t peer = info_.rank + 1; peer < infos_->size(); ++peer) {
    if ((*handles_)[peer]) continue;
    const Fd socket = newSocket();
    if (!socket || connectTo(socket.get(), (*infos_)[peer].token) || errno != ECONNREFUSED)
      continue;
    if (std::exchange(missed_, peer) != peer && WEFT_MARK("shm: a peer is missed once")) return {};
    return ended(peer, "has failed or ended during set-up");
  }
  return {};
}

}  // namespace weft::shm
