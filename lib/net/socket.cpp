// SPDX-License-Identifier: Apache-2.0
#include "net/socket.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/mark.h"
#include "base/no_fork.h"
#include "base/text.h"
#include "net/fd_limit.h"

namespace weft::net {
namespace {

// The sockets that a forked child has to close. No fork comes while the lock is held, so the
// child finds the set whole.
class OpenSockets {
 public:
  static OpenSockets& get() { return processWide<OpenSockets>(); }
  void add(Fd* fd) {
    const std::lock_guard lock(mutex_);
    fds_.insert(fd);
  }
  void remove(Fd* fd) {
    const std::lock_guard lock(mutex_);
    fds_.erase(fd);
  }

  void closeInChild() {
    for (Fd* fd : fds_) fd->reset();
    fds_.clear();
  }

 private:
  ForkSafeMutex mutex_;
  std::unordered_set<Fd*> fds_;
};

[[maybe_unused]] const int forkHandler =
    pthread_atfork(nullptr, nullptr, [] { OpenSockets::get().closeInChild(); });

void setOption(int fd, int level, int name, int value) {
  // Only tuning: a kernel that does not know an option is no reason to fail.
  (void)setsockopt(fd, level, name, &value, sizeof value);
}

// No delay for small frames, and a silent host is noticed after about five seconds.
void tune(int fd) {
  setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  setOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
}

// Within a host silence tells nothing: whoever ends closes, and a kernel that takes seconds to pass on
// what was sent is busy.
void tuneConnected(const Socket& socket) {
  if (!isWithinHost(socket)) return;
  setOption(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, 0);
  setOption(socket.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

Status systemError(std::string_view what, const Address& address, int error) {
  return Status::error(Code::SystemError, what, ' ', address.text(), ": ", std::strerror(error),
                       fixFor(error));
}

bool waitFor(const Socket& socket, short events, Deadline deadline) {
  pollfd entry{socket.fd(), events, 0};
  for (;;) {
    const int ready = poll(&entry, 1, deadline.pollTimeoutMs());
    if (ready > 0) return true;
    if (ready == 0 && deadline.expired()) return false;
    if (ready < 0 && errno != EINTR) return true;  // the next call on the socket reports it
  }
}

sockaddr* asSockaddr(sockaddr_storage* storage) { return reinterpret_cast<sockaddr*>(storage); }

Socket newSocket(const Address& address) {
  const int family = address.v6 ? AF_INET6 : AF_INET;
  return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int connectError(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Socket::Socket(int fd) {
  Fd taken(fd);  // closed without memory: the other side would wait
  if (!taken) return;
  fd_.reset(new Fd(std::move(taken)));
  OpenSockets::get().add(fd_.get());
}

void Socket::Forget::operator()(Fd* fd) const {
  OpenSockets::get().remove(fd);
  delete fd;
}

Status listenAt(const Address& address, Socket* out, Address* bound, int* error) {
  sockaddr_storage storage;
  socklen_t size = address.toSockaddr(&storage);
  Socket socket = newSocket(address);
  if (socket) {
    setOption(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (address.v6) setOption(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  if (!socket || bind(socket.fd(), asSockaddr(&storage), size) != 0 ||
      listen(socket.fd(), SOMAXCONN) != 0 ||
      getsockname(socket.fd(), asSockaddr(&storage), &(size = sizeof storage)) != 0) {
    *error = errno;
    return systemError("cannot listen at", address, *error);
  }
  *bound = Address::from(asSockaddr(&storage));
  *out = std::move(socket);
  return {};
}

Socket acceptFrom(const Socket& listener, Address* peer, bool* exhausted) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  int fd;
  do {
    fd = accept4(listener.fd(), asSockaddr(&storage), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED) && WEFT_MARK("net: accept again"));
  *exhausted = fd < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
  if (fd < 0) return Socket();
  tune(fd);
  *peer = Address::from(asSockaddr(&storage));
  Socket socket(fd);
  tuneConnected(socket);
  return socket;
}

Status connectTo(const Address& address, Deadline deadline, Socket* out, int* error) {
  sockaddr_storage storage;
  const socklen_t size = address.toSockaddr(&storage);
  Socket socket = newSocket(address);
  if (!socket) {
    *error = errno;
    return systemError("no socket for", address, *error);
  }
  tune(socket.fd());
  *error = connect(socket.fd(), asSockaddr(&storage), size) == 0 ? 0 : errno;
  // EINTR does not undo a connect: it goes on like one in progress.
  if (*error == EINPROGRESS || (*error == EINTR && WEFT_MARK("net: connect goes on"))) {
    if (!waitWritable(socket, deadline))
      return Status::error(Code::Timeout, "no answer from ", address.text());
    *error = connectError(socket);
  }
  if (*error != 0) return systemError("cannot connect to", address, *error);
  tuneConnected(socket);
  *out = std::move(socket);
  return {};
}

bool isWithinHost(const Socket& socket) {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof here;
  if (getsockname(socket.fd(), asSockaddr(&here), &size) != 0) return false;
  size = sizeof there;
  if (getpeername(socket.fd(), asSockaddr(&there), &size) != 0) return false;
  return Address::from(asSockaddr(&here)).ip == Address::from(asSockaddr(&there)).ip;
}

bool waitReadable(const Socket& socket, Deadline deadline) {
  return waitFor(socket, POLLIN, deadline);
}
bool waitWritable(const Socket& socket, Deadline deadline) {
  return waitFor(socket, POLLOUT, deadline);
}

}  // namespace weft::net
