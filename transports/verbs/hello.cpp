// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/hello.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/deadline.h"
#include "base/fd.h"

namespace weft::verbs {
namespace {

constexpr int kEveryMs = 100;

struct Message {
  std::uint32_t magic = 0x54464557;
  std::uint32_t rank = 0;
  std::uint32_t port = 0;
  std::uint32_t unused = 0;
  std::uint64_t job = 0;
};

Status failed(const char* what) {
  return Status::error(Code::SystemError, "verbs: hello between ports, ", what, ": ",
                       std::strerror(errno),
                       "; fix: IPv6 on the ports' networks, or WEFT_MESH_FILE");
}

bool enable(const Fd& socket, int level, int option, int value) {
  return ::setsockopt(socket.get(), level, option, &value, sizeof(value)) == 0;
}

// From the range without registered ports; the same for all ranks of a job.
in_port_t portOf(std::uint64_t job) {
  return htons(static_cast<std::uint16_t>(49152 + job % 16384));
}

// Several ranks of a host listen on the same port: each hears all.
Status openSocket(std::uint64_t job, Fd* out) {
  Fd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed("socket");
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = portOf(job);
  if (!enable(fd, SOL_SOCKET, SO_REUSEADDR, 1) || !enable(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) ||
      !enable(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) ||
      !enable(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0))
    return failed("setsockopt");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0)
    return failed("bind");
  *out = std::move(fd);
  return {};
}

// Nobody hears a port that cannot send now; all ranks find that out.
void sendAll(const Fd& socket, const std::vector<Port>& ports, Message message) {
  for (std::uint32_t i = 0; i < ports.size(); ++i) {
    if (ports[i].info.onNetwork == 0) continue;
    sockaddr_in6 all{};
    all.sin6_family = AF_INET6;
    all.sin6_port = portOf(message.job);
    all.sin6_scope_id = ports[i].interface;
    ::inet_pton(AF_INET6, "ff02::1", &all.sin6_addr);
    message.port = i;
    (void)::sendto(socket.get(), &message, sizeof(message), MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&all), sizeof(all));
  }
}

// The interface that the datagram came in by; 0 if the kernel does not say.
std::uint32_t interfaceOf(msghdr& header) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != IPPROTO_IPV6 || part->cmsg_type != IPV6_PKTINFO) continue;
    in6_pktinfo info;
    std::memcpy(&info, CMSG_DATA(part), sizeof(info));
    return static_cast<std::uint32_t>(info.ipi6_ifindex);
  }
  return 0;
}

// False: nothing there.
bool receive(const Fd& socket, Message* message, std::uint32_t* interface) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in6_pktinfo))];
  iovec bytes{message, sizeof(*message)};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t got = ::recvmsg(socket.get(), &header, 0);
  if (got < 0) return false;
  *interface = got == sizeof(*message) ? interfaceOf(header) : 0;
  return true;
}

void note(const std::vector<Port>& ports, const Message& message, std::uint32_t interface,
          std::vector<Heard>* out) {
  for (std::uint32_t i = 0; i < ports.size(); ++i) {
    const Heard heard{i, message.rank, message.port};
    if (ports[i].info.onNetwork != 0 && ports[i].interface == interface &&
        std::find(out->begin(), out->end(), heard) == out->end())
      out->push_back(heard);
  }
}

}  // namespace

Status sayHello(const std::vector<Port>& ports, std::uint32_t rank, std::uint64_t job, int ms,
                std::vector<Heard>* out) {
  out->clear();
  Fd socket;
  WEFT_TRY(openSocket(job, &socket));
  const Message mine{.rank = rank, .job = job};
  const Deadline end = Deadline::in(ms);
  while (!end.expired()) {
    sendAll(socket, ports, mine);
    const Deadline next = Deadline::in(kEveryMs).orSooner(end);
    while (!next.expired()) {
      pollfd wait{socket.get(), POLLIN, 0};
      (void)::poll(&wait, 1, next.pollTimeoutMs());
      Message message;
      for (std::uint32_t interface = 0; receive(socket, &message, &interface);)
        if (message.magic == mine.magic && message.job == job && message.rank != rank)
          note(ports, message, interface, out);
    }
  }
  return {};
}

}  // namespace weft::verbs
