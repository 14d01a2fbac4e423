// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/fd_hub.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/mark.h"
#include "base/text.h"

namespace weft::shm {
namespace {

constexpr int kTickMs = 100;  // how often silent ranks are checked
constexpr int kBusyMs = 1;    // how soon somebody who could not take more is tried again
constexpr std::size_t kMostVerdict = 1900;

}  // namespace

Status endedInSetup(const PeerInfo& peer, const std::string& how) {
  return Status::error(
      {.code = Code::RemoteError, .who = nameOf(peer), .what = "shm transport: {who} " + how});
}

Status hungUpInSetup(const PeerInfo& peer) {
  return endedInSetup(peer, "hung up; it has failed or ended during set-up");
}

Status descriptorsLost(const PeerInfo& sender) {
  return Status::error(Code::SystemError, "shm transport: descriptors from ", nameOf(sender),
                       " were lost; fix: raise the limit of open files (ulimit -n)");
}

ErrorData lateInSetup() {
  ErrorData data{.code = Code::Timeout};
  data.what = "shm transport: no shared memory in time from ";
  data.fix = "see why they hang, or a longer WEFT_INIT_TIMEOUT_MS";
  return data;
}

FdHub::FdHub(const Fd& listener, const std::vector<PeerInfo>& infos, const Descriptors& mine,
             Deadline deadline, Handles* handles)
    : listener_(listener),
      infos_(infos),
      mine_(mine),
      deadline_(deadline),
      handles_(*handles),
      members_(infos.size()),
      missing_(infos.size() - 1) {}

Status FdHub::run() {
  Status result = collect();
  if (result.ok()) result = handOut();
  if (!result.ok()) tellWhy(result);
  return result;
}

Status FdHub::collect() {
  for (;;) {
    WEFT_TRY(acceptAll());
    for (Fd& caller : callers_) WEFT_TRY(hear(&caller));
    std::erase_if(callers_, [](const Fd& caller) { return !caller; });
    if (missing_ == 0) return {};
    WEFT_TRY(wait());
  }
}

// Foreign callers are no error, or anybody could stop a job: they are hung up on.
Status FdHub::acceptAll() {
  for (;;) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket && (errno == EINTR || errno == ECONNABORTED) && WEFT_MARK("shm: accept again"))
      continue;
    if (!socket) return errno == EAGAIN ? Status() : socketError("cannot accept a peer");
    if (isOurs(socket.get()) && callers_.size() < 2 * infos_.size() + 16)
      callers_.push_back(std::move(socket));
  }
}

Status FdHub::hear(Fd* caller) {
  ReceivedMessage heard;
  if (!receiveMessage(caller->get(), &heard)) return {};
  const std::uint32_t rank = heard.first;
  const bool known = heard.sound && heard.kind == FdMessage::Hello &&
                     heard.secret == infos_[0].secret && rank != 0 && rank < infos_.size() &&
                     !handles_[rank];
  if (!known) {
    (void)WEFT_MARK("shm: a foreign caller is hung up on");
    caller->reset();
    return {};
  }
  members_[rank].socket = std::move(*caller);
  if (heard.cut) return descriptorsLost(infos_[rank]);
  std::size_t next = 0;
  handles_[rank] = take(heard.content[0], heard.descriptors, &next);
  --missing_;
  return {};
}

Status FdHub::wait() {
  if (deadline_.expired()) return late();
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const Fd& caller : callers_) entries.push_back({caller.get(), POLLIN, 0});
  const int most = std::min(kTickMs, deadline_.pollTimeoutMs());
  return ::poll(entries.data(), entries.size(), most) == 0 ? checkMissing() : Status();
}

// All listen until they are through. Who has not called and no longer listens never will, unless
// its call has come since we looked for it: so it must be missed twice.
Status FdHub::checkMissing() {
  for (std::uint32_t rank = 1; rank < infos_.size(); ++rank) {
    if (handles_[rank]) continue;
    const Fd socket = newSocket();
    if (!socket || connectTo(socket.get(), infos_[rank].token) || errno != ECONNREFUSED) continue;
    if (std::exchange(missed_, rank) != rank && WEFT_MARK("shm: a peer is missed once")) return {};
    return endedInSetup(infos_[rank], "has failed or ended during set-up");
  }
  return {};
}

void FdHub::makeTables() {
  const auto all = static_cast<std::uint32_t>(infos_.size());
  for (std::uint32_t rank = 0; rank < all; ++rank) {
    if (tables_.empty() || tables_.back().descriptors.size() + kDescriptors > kMostDescriptors)
      tables_.push_back({{.kind = FdMessage::Table, .first = rank, .content = {}}, {}});
    const Descriptors& theirs = rank == 0 ? mine_ : *handles_[rank];
    tables_.back().message.content.push_back(presentIn(theirs));
    append(theirs, &tables_.back().descriptors);
  }
}

Status FdHub::handOut() {
  makeTables();
  for (;;) {
    bool busy = false;
    for (std::uint32_t rank = 1; rank < members_.size(); ++rank) WEFT_TRY(tell(rank, &busy));
    if (!busy) return {};
    if (deadline_.expired()) return late();
    ::poll(nullptr, 0, kBusyMs);
  }
}

Status FdHub::tell(std::uint32_t rank, bool* busy) {
  Member& member = members_[rank];
  for (; member.told < tables_.size(); ++member.told) {
    Table& table = tables_[member.told];
    table.message.secret = infos_[rank].secret;
    if (sendMessage(member.socket.get(), table.message, table.descriptors)) continue;
    *busy = transient(errno);
    if (*busy && WEFT_MARK("shm: a peer is told more later")) return {};
    if (errno == EPIPE || errno == ECONNRESET) return hungUpInSetup(infos_[rank]);
    return socketError(text("cannot send to ", nameOf(infos_[rank])));
  }
  return {};
}

void FdHub::tellWhy(const Status& verdict) {
  FdMessage message{.kind = FdMessage::Verdict, .content = {}};
  const std::string packed = pack(verdict, kMostVerdict);
  const auto bytes = std::as_bytes(std::span(packed));
  message.content.assign(bytes.begin(), bytes.end());
  for (std::uint32_t rank = 1; rank < members_.size(); ++rank) {
    message.secret = infos_[rank].secret;
    if (members_[rank].socket) (void)sendMessage(members_[rank].socket.get(), message, {});
  }
}

Status FdHub::late() const {
  ErrorData data = lateInSetup();
  for (std::uint32_t rank = 1; rank < infos_.size(); ++rank) {
    if (missing_ == 0 ? members_[rank].told == tables_.size() : handles_[rank].has_value())
      continue;
    data.what += text(data.missing.empty() ? "" : ", ", nameOf(infos_[rank]));
    if (data.missing.empty()) data.who = nameOf(infos_[rank]);
    data.missing.push_back(rank);
  }
  return Status::error(std::move(data));
}

}  // namespace weft::shm
