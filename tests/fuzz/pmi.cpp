// SPDX-License-Identifier: Apache-2.0
// An mpiexec that answers anything, and then hangs up.
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "launch/pmi_wire.h"

namespace weft::fuzz {
namespace {

// Both ends of a connection on which all answers are there already.
struct Connection {
  explicit Connection(std::string_view answers) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there are sockets");
    ours = Fd(ends[0]);
    theirs = Fd(ends[1]);
    const ssize_t sent = ::send(theirs.get(), answers.data(), answers.size(), MSG_DONTWAIT);
    require(sent == static_cast<ssize_t>(answers.size()), "the answers fit in a socket");
    ::shutdown(theirs.get(), SHUT_WR);
  }
  Fd ours, theirs;
};

}  // namespace

void tryInput(Input input) {
  const Connection connection(textOf(input));
  launch::PmiClient client(connection.ours.get());
  const Deadline deadline = Deadline::in(10'000);
  std::string value;
  if (!isGood(client.initialize(deadline))) return;
  if (!isGood(client.put("key", "value", deadline))) return;
  if (!isGood(client.barrier(deadline))) return;
  if (!isGood(client.get("key", &value, deadline))) return;
  require(value.find('\n') == std::string::npos && value.find(' ') == std::string::npos,
          "a value is one word");
  (void)isGood(client.finalize(deadline));
}

}  // namespace weft::fuzz
