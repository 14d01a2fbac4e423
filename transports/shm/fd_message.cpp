// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/fd_message.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transports/shm/receive.h"

namespace weft::shm {
namespace {

constexpr std::size_t kMostContent = 2000;

struct Header {
  std::uint32_t magic = kWindowMagic;
  std::uint32_t kind = 0;
  std::uint32_t first = 0;
  std::uint32_t descriptors = 0;
  Token secret = {};
};

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// Abstract: it begins with a zero byte.
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

// Takes hold of all descriptors that came, wanted or not, so that none leaks.
std::vector<Fd> takeDescriptors(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    fds.reserve(fds.size() + count);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

Status socketError(const std::string& doing) {
  const int error = errno;
  const bool full = error == EMFILE || error == ENFILE;
  return Status::error(Code::SystemError, "shm transport: ", doing, ": ", std::strerror(error),
                       full ? "; fix: raise the limit of open files (ulimit -n)" : "");
}

Fd newSocket() { return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

Status listenAs(const Token& token, Fd* listener) {
  *listener = newSocket();
  if (!*listener) return socketError("cannot make a socket");
  const Address here = addressOf(token);
  if (::bind(listener->get(), reinterpret_cast<const sockaddr*>(&here.name), here.bytes) != 0 ||
      ::listen(listener->get(), SOMAXCONN) != 0)
    return socketError("cannot listen on an abstract UNIX socket");
  return {};
}

bool connectTo(int socket, const Token& token) {
  const Address to = addressOf(token);
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&to.name), to.bytes) == 0;
}

bool isOurs(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return false;
  errno = EPERM;
  return peer.uid == ::geteuid();
}

bool transient(int error) {
  return error == EAGAIN || error == EINTR || error == ETOOMANYREFS || error == ENOBUFS;
}

bool sendMessage(int socket, const FdMessage& said, std::span<const int> descriptors) {
  Header header{.kind = said.kind,
                .first = said.first,
                .descriptors = static_cast<std::uint32_t>(descriptors.size()),
                .secret = said.secret};
  iovec parts[] = {{&header, sizeof(header)},
                   {const_cast<std::byte*>(said.content.data()), said.content.size()}};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

bool receiveMessage(int socket, ReceivedMessage* heard) {
  Header header;
  heard->content.resize(kMostContent);
  iovec parts[] = {{&header, sizeof(header)}, {heard->content.data(), heard->content.size()}};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t bytes = receiveMessage(socket, &message);
  if (bytes < 0 && transient(errno)) return false;
  heard->descriptors = bytes > 0 ? takeDescriptors(message) : std::vector<Fd>();
  heard->sound = bytes > static_cast<ssize_t>(sizeof(header)) && header.magic == kWindowMagic &&
                 (message.msg_flags & MSG_TRUNC) == 0;
  if (!heard->sound) return true;
  heard->cut = heard->descriptors.size() < header.descriptors;
  heard->content.resize(static_cast<std::size_t>(bytes) - sizeof(header));
  heard->kind = static_cast<FdMessage::Kind>(header.kind);
  heard->first = header.first;
  heard->secret = header.secret;
  return true;
}

std::byte presentIn(const Descriptors& all) {
  std::byte present{};
  for (std::size_t i = 0; i < kDescriptors; ++i)
    if (all[i]) present |= std::byte{1} << i;
  return present;
}

void append(const Descriptors& all, std::vector<int>* to) {
  for (const Fd& one : all)
    if (one) to->push_back(one.get());
}

Descriptors take(std::byte present, std::vector<Fd>& from, std::size_t* next) {
  Descriptors taken;
  for (std::size_t i = 0; i < kDescriptors; ++i)
    if ((present & std::byte{1} << i) != std::byte{} && *next < from.size())
      taken[i] = std::move(from[(*next)++]);
  return taken;
}

}  // namespace weft::shm
