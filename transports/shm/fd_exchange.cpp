// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/fd_exchange.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/mark.h"
#include "base/text.h"

namespace weft::shm {
namespace {

constexpr std::chrono::milliseconds kForVerdict{500};  // the first rank says who is late

// A rank's part that is not the first.
class Caller {
 public:
  Caller(std::uint32_t rank, const std::vector<PeerInfo>& infos, Deadline deadline)
      : rank_(rank), infos_(infos), deadline_(deadline) {}

  Status call();
  Status say(const Descriptors& mine) const;
  Status hear(Handles* handles);

 private:
  Status waitFor(short events, int mostMs, Deadline deadline) const;
  Status hungUp() const { return hungUpInSetup(infos_[0]); }
  Status read(ReceivedMessage& heard, Handles* handles);

  const std::uint32_t rank_;
  const std::vector<PeerInfo>& infos_;
  const Deadline deadline_;
  Fd socket_;
  std::size_t next_ = 0;  // the first whose descriptors have not come
};

Status Caller::waitFor(short events, int mostMs, Deadline deadline) const {
  if (deadline.expired()) {
    ErrorData data = lateInSetup();
    data.what += "{who}";
    data.who = nameOf(infos_[0]);
    data.missing = {0};
    return Status::error(std::move(data));
  }
  pollfd entry{socket_.get(), events, 0};
  ::poll(&entry, 1, std::min(mostMs, deadline.pollTimeoutMs()));
  return {};
}

Status Caller::call() {
  socket_ = newSocket();
  if (!socket_) return socketError("cannot make a socket");
  while (!connectTo(socket_.get(), infos_[0].token)) {
    if (!transient(errno))
      return endedInSetup(infos_[0], text("does not answer: ", std::strerror(errno),
                                          "; it has failed or ended during set-up"));
    (void)WEFT_MARK("shm: a peer is called again");
    WEFT_TRY(waitFor(0, 1, deadline_));
  }
  if (isOurs(socket_.get())) return {};
  return socketError(text("cannot see that our user runs ", nameOf(infos_[0])));
}

Status Caller::say(const Descriptors& mine) const {
  std::vector<int> descriptors;
  append(mine, &descriptors);
  const FdMessage hello{FdMessage::Hello, rank_, infos_[0].secret, {presentIn(mine)}};
  while (!sendMessage(socket_.get(), hello, descriptors)) {
    if (errno == EPIPE || errno == ECONNRESET) return hungUp();
    if (!transient(errno)) return socketError(text("cannot send to ", nameOf(infos_[0])));
    WEFT_TRY(waitFor(0, 1, deadline_));
  }
  return {};
}

Status Caller::hear(Handles* handles) {
  const Deadline deadline = Deadline::in(deadline_.remaining() + kForVerdict);
  while (next_ < infos_.size()) {
    ReceivedMessage heard;
    if (receiveMessage(socket_.get(), &heard))
      WEFT_TRY(read(heard, handles));
    else
      WEFT_TRY(waitFor(POLLIN, deadline.pollTimeoutMs(), deadline));
  }
  return {};
}

Status Caller::read(ReceivedMessage& heard, Handles* handles) {
  if (!heard.sound || heard.secret != infos_[rank_].secret) return hungUp();
  if (heard.kind == FdMessage::Verdict) {
    Status verdict;
    const std::string_view packed(reinterpret_cast<const char*>(heard.content.data()),
                                  heard.content.size());
    (void)unpack(packed, &verdict);
    return verdict.ok() ? hungUp() : verdict;
  }
  if (heard.kind != FdMessage::Table || heard.first != next_ ||
      heard.content.size() > infos_.size() - next_)
    return hungUp();
  if (heard.cut) return descriptorsLost(infos_[0]);
  std::size_t taken = 0;
  for (const std::byte present : heard.content) {
    Descriptors theirs = take(present, heard.descriptors, &taken);
    if (next_ != rank_) (*handles)[next_] = std::move(theirs);
    ++next_;
  }
  return {};
}

}  // namespace

Status FdExchange::open(const PeerInfo& mine) {
  rank_ = mine.rank;
  return listenAs(mine.token, &listener_);
}

Status FdExchange::meet(const std::vector<PeerInfo>& infos, const Descriptors& mine,
                        Deadline deadline, Handles* handles) {
  const Fd listener = std::move(listener_);  // closed at the end, whichever it is
  handles->resize(infos.size());
  if (rank_ == 0) return FdHub(listener, infos, mine, deadline, handles).run();
  Caller caller(rank_, infos, deadline);
  WEFT_TRY(caller.call());
  WEFT_TRY(caller.say(mine));
  return caller.hear(handles);
}

}  // namespace weft::shm
