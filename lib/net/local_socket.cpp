// SPDX-License-Identifier: Apache-2.0
#include "net/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace weft::net {
namespace {

struct LocalName {
  sockaddr_un address{};
  socklen_t size;

  explicit LocalName(std::string_view name) {
    address.sun_family = AF_UNIX;
    const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::copy_n(name.begin(), length, address.sun_path + 1);  // after the zero: abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Socket newLocal() {
  return Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

int listenAtName(std::string_view name, Socket* out) {
  const LocalName local(name);
  Socket socket = newLocal();
  const bool worked = socket && ::bind(socket.fd(), local.get(), local.size) == 0 &&
                      ::listen(socket.fd(), SOMAXCONN) == 0;
  const int error = worked ? 0 : errno;
  if (worked) *out = std::move(socket);
  return error;
}

int connectToName(std::string_view name, Socket* out) {
  const LocalName local(name);
  Socket socket = newLocal();
  const bool worked = socket && ::connect(socket.fd(), local.get(), local.size) == 0;
  const int error = worked ? 0 : errno;
  if (worked) *out = std::move(socket);
  return error;
}

}  // namespace weft::net
