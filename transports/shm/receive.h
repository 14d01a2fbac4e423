// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

namespace weft::shm {

// The next message of a SOCK_SEQPACKET socket of the UNIX domain, as recvmsg(2) has it, without
// waiting. 0 only if the peer has hung up and all that it said before has been taken: Linux looks
// for a message first and then for the end, so that whoever speaks and hangs up in between seems to
// have said nothing, until somebody looks again.
inline ssize_t receiveMessage(int socket, msghdr* message) {
  const msghdr asked = *message;
  const ssize_t bytes = ::recvmsg(socket, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes != 0) return bytes;
  *message = asked;
  return ::recvmsg(socket, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

}  // namespace weft::shm
