// SPDX-License-Identifier: Apache-2.0
#include "control/link_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace weft::control {

using std::chrono::milliseconds;

namespace {

constexpr int kSilenceMs = 3000;
constexpr milliseconds kUsualSilence{1250};  // a second, and what an answer may take

bool nothingCame(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN ||
         error == EHOSTDOWN;
}

// Since when nothing has come from the other kernel.
milliseconds silenceOf(const net::Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool known = ::getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  return known ? milliseconds(info.tcpi_last_ack_recv) : milliseconds(0);
}

}  // namespace

void watchClosely(const net::Socket& socket) {
  if (net::isWithinHost(socket)) return;
  const auto set = [&](int name, int value) {
    (void)::setsockopt(socket.fd(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 1);
  set(TCP_KEEPINTVL, 1);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, kSilenceMs);
}

bool isSilent(const net::Socket& socket) {
  return !net::isWithinHost(socket) && silenceOf(socket) > kUsualSilence;
}

ControlState::Loss lossOf(const net::Stream& stream) {
  if (!nothingCame(stream.error())) return {};
  return {ControlState::Loss::Cut, std::max(silenceOf(stream.socket()), milliseconds(kSilenceMs))};
}

}  // namespace weft::control
