// SPDX-License-Identifier: Apache-2.0
#include "control/link_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace weft::control {
namespace {

constexpr int kSilenceMs = 3000;

bool nothingCame(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN ||
         error == EHOSTDOWN;
}

}  // namespace

void watchClosely(const net::Socket& socket) {
  const auto set = [&](int name, int value) {
    (void)::setsockopt(socket.fd(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 1);
  set(TCP_KEEPINTVL, 1);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, kSilenceMs);
}

ControlState::Loss lossOf(const net::Stream& stream) {
  if (!nothingCame(stream.error())) return {};
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool known = ::getsockopt(stream.socket().fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  const auto silence = known ? std::max<std::int64_t>(info.tcpi_last_ack_recv, kSilenceMs)
                             : std::int64_t{kSilenceMs};
  return {ControlState::Loss::Cut, std::chrono::milliseconds(silence)};
}

}  // namespace weft::control
