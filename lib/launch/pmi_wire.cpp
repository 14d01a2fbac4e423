// SPDX-License-Identifier: Apache-2.0
#include "launch/pmi_wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace weft::launch {
namespace {

// The protocol's own limit on a line is 1024; some servers go beyond.
constexpr std::size_t kMaxLine = 16 * 1024;

Status broken(std::string_view why) {
  return Status::error(Code::SystemError, "PMI: ", why,
                       ". fix: start the ranks with MPICH's mpiexec, or set "
                       "WEFT_RANK, WEFT_SIZE and WEFT_ROOT");
}

Status late() {
  return Status::error(
      Code::Timeout,
      "PMI: mpiexec did not answer by the deadline; in a barrier this means that other ranks of "
      "the job have not come here. fix: call weftCommInitFromEnv in all of them");
}

bool waitFor(int fd, short events, Deadline deadline) {
  pollfd entry{fd, events, 0};
  while (poll(&entry, 1, deadline.pollTimeoutMs()) <= 0)
    if (deadline.expired()) return false;
  return true;
}

}  // namespace

bool pmiValue(std::string_view line, std::string_view key, std::string* value) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && word.substr(0, equals) == key) {
      *value = word.substr(equals + 1);
      return true;
    }
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  return false;
}

Status PmiClient::sendLine(std::string_view line, Deadline deadline) {
  while (!line.empty()) {
    const ssize_t sent = send(fd_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) line.remove_prefix(static_cast<std::size_t>(sent));
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return broken(text("cannot write to PMI_FD: ", std::strerror(errno)));
    if (!waitFor(fd_, POLLOUT, deadline)) return late();
  }
  return {};
}

Status PmiClient::readLine(std::string* line, Deadline deadline) {
  for (;;) {
    const std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      *line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return {};
    }
    if (unread_.size() > kMaxLine) return broken("mpiexec sent a line without end");
    if (!waitFor(fd_, POLLIN, deadline)) return late();
    std::array<char, 2048> buffer;
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got == 0) return broken("mpiexec closed PMI_FD");
    if (got > 0) unread_.append(buffer.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
      return broken(text("cannot read from PMI_FD: ", std::strerror(errno)));
  }
}

Status PmiClient::ask(const std::string& request, std::string_view answer, std::string* reply,
                      Deadline deadline) {
  WEFT_TRY(sendLine(request + '\n', deadline));
  WEFT_TRY(readLine(reply, deadline));
  std::string command, code;
  pmiValue(*reply, "cmd", &command);
  if (command != answer)
    return broken(text("expected ", answer, ", got \"", reply->substr(0, 200), '"'));
  if (pmiValue(*reply, "rc", &code) && code != "0")
    return broken(text("mpiexec refused: ", reply->substr(0, 200)));
  return {};
}

Status PmiClient::initialize(Deadline deadline) {
  std::string reply;
  WEFT_TRY(ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", &reply, deadline));
  WEFT_TRY(ask("cmd=get_my_kvsname", "my_kvsname", &reply, deadline));
  return pmiValue(reply, "kvsname", &space_) ? Status() : broken("no name of the key-value space");
}

Status PmiClient::put(std::string_view key, std::string_view value, Deadline deadline) {
  std::string reply;
  return ask(text("cmd=put kvsname=", space_, " key=", key, " value=", value), "put_result", &reply,
             deadline);
}

Status PmiClient::barrier(Deadline deadline) {
  std::string reply;
  return ask("cmd=barrier_in", "barrier_out", &reply, deadline);
}

Status PmiClient::get(std::string_view key, std::string* value, Deadline deadline) {
  std::string reply;
  WEFT_TRY(ask(text("cmd=get kvsname=", space_, " key=", key), "get_result", &reply, deadline));
  return pmiValue(reply, "value", value) ? Status() : broken(text("no value for ", key));
}

Status PmiClient::finalize(Deadline deadline) {
  std::string reply;
  return ask("cmd=finalize", "finalize_ack", &reply, deadline);
}

}  // namespace weft::launch
