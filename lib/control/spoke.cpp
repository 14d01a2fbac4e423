// SPDX-License-Identifier: Apache-2.0
#include "control/spoke.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/rank_list.h"
#include "base/text.h"
#include "control/bodies.h"
#include "control/link_socket.h"
#include "transports/mapped/doorbell.h"
#include "watch/verdict.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kVerdictPatience{250};
constexpr std::int64_t kGoodbyeMs = 1000;

std::vector<bool> farOf(const std::vector<ControlPage*>& mirrors) {
  std::vector<bool> far;
  for (const ControlPage* mirror : mirrors) far.push_back(mirror != nullptr);
  return far;
}

}  // namespace

Spoke::Spoke(const ControlLinkSetup& setup, std::unique_ptr<Stream> stream)
    : rank_(setup.rank),
      names_(setup.names),
      far_(farOf(setup.mirrors)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stream_(std::move(stream)),
      own_(setup.own),
      mirrors_(setup.mirrors),
      silence_(setup.ranks),
      ended_(setup.ranks),
      parts_(setup.ranks),
      leftEarly_(setup.ranks) {
  watchClosely(stream_->socket());
}

// ---- any thread ----

void Spoke::wake() {
  const std::uint64_t one = 1;
  (void)!::write(bell_.fd(), &one, sizeof one);
}

void Spoke::propose(const Status& cause) {
  std::unique_lock lock(mutex_);
  const bool late = isPublished(verdict_);
  if (late && !overrules(cause, statusOf(verdict_))) return;
  if (!wishes_.cause) wishes_.cause = cause;
  wake();
  changed_.wait_until(lock, Clock::now() + kVerdictPatience,
                      [&] { return gone_ || (late ? !overruled_.ok() : isPublished(verdict_)); });
  if (late && overruled_.ok()) overruled_ = cause;  // nobody can be told
}

Status Spoke::overruled() const {
  const std::lock_guard lock(mutex_);
  return overruled_;
}

Status Spoke::gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all,
                     Deadline deadline) {
  if (mine.size() > kMaxPartBytes)
    return Status::error(Code::InternalError, text("part of ", mine.size(), " bytes in a round"));
  std::unique_lock lock(mutex_);
  wishes_.parts.emplace_back(mine.begin(), mine.end());
  wake();
  Status never;
  const bool settled = changed_.wait_until(lock, deadline.at(), [&] {
    never = whyIncomplete();
    return !never.ok() || missing().empty();
  });
  if (!settled)
    return Status::error(Code::Timeout, rankList(missing()) + " did not make a call in time");
  WEFT_TRY(never);
  all->clear();
  for (std::deque<Bytes>& parts : parts_) {
    all->push_back(std::move(parts.front()));
    parts.pop_front();
  }
  return {};
}

std::vector<std::uint32_t> Spoke::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < parts_.size(); ++r)
    if (parts_[r].empty()) ranks.push_back(r);
  return ranks;
}

// OK as long as those who are missing may still come.
Status Spoke::whyIncomplete() const {
  if (!overruled_.ok()) return overruled_;
  for (const std::uint32_t r : missing()) {
    if (!ended_[r].ok()) return ended_[r];
    if (leftEarly_[r])
      return Status::error(Code::RemoteError,
                           describe(names_[r]) + " has destroyed its end of the communicator");
    if (gone_) return hasEnded(names_[0]);
  }
  return {};
}

void Spoke::refresh(milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (gone_) return;
  if (!askedSince_) {
    askedSince_ = Clock::now();
    wishes_.query = true;
    wake();
  }
  if (patience == milliseconds::zero()) return;
  const std::uint64_t before = answers_;
  changed_.wait_until(lock, Clock::now() + patience,
                      [&] { return answers_ != before || isPublished(verdict_) || gone_; });
}

Status Spoke::ended(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return ended_[rank];
}

// While the hub owes an answer, nobody knows of the others whether they would answer.
milliseconds Spoke::silence(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  if (gone_ || rank == rank_) return milliseconds::zero();
  if (!askedSince_) return silence_[rank];
  const auto hub = std::chrono::duration_cast<milliseconds>(Clock::now() - *askedSince_);
  return rank == 0 ? std::max(hub, silence_[0]) : silence_[rank];
}

void Spoke::leave() {
  const std::lock_guard lock(mutex_);
  wishes_.leave = true;
  wake();
}

void Spoke::detach() {
  const std::lock_guard lock(mutex_);
  if (own_ != nullptr) last_ = readPage(*own_);
  last_.left = true;
  own_ = nullptr;
  std::ranges::fill(mirrors_, nullptr);
  wishes_.leave = true;
  wake();
}

// ---- the thread ----

void Spoke::run(const StopSignal& stop) {
  while (stream_) {
    wait(stop);
    takeWishes(stop.raised());
    receive();
    if (stream_ && !flush()) lose(errno);
    if (goodbye_ && goodbye_->expired()) stream_.reset();
  }
}

void Spoke::wait(const StopSignal& stop) {
  const bool writes = !stream_->channel().pending().empty();
  pollfd entries[] = {
      {stream_->socket().fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0},
      {bell_.fd(), POLLIN, 0},
      {goodbye_ ? -1 : stop.fd(), POLLIN, 0}};
  (void)::poll(entries, std::size(entries), goodbye_ ? goodbye_->pollTimeoutMs() : -1);
  std::uint64_t rings = 0;
  (void)!::read(bell_.fd(), &rings, sizeof rings);
}

void Spoke::takeWishes(bool processEnds) {
  const std::lock_guard lock(mutex_);
  Channel& channel = stream_->channel();
  if (std::exchange(wishes_.query, false)) channel.send(MessageType::Query, Bytes());
  if (wishes_.cause) {
    channel.send(MessageType::Failed, encode(*wishes_.cause));
    wishes_.cause.reset();
  }
  for (Bytes& part : wishes_.parts) channel.send(MessageType::Gather, std::move(part));
  wishes_.parts.clear();
  if (goodbye_ || !(wishes_.leave || processEnds)) return;
  channel.send(MessageType::Report, encode(ownPage()));
  channel.send(MessageType::Bye, Bytes());
  goodbye_ = Deadline::in(kGoodbyeMs);  // until the hub has read it, and closes
}

PageReport Spoke::ownPage() const { return own_ != nullptr ? readPage(*own_) : last_; }

bool Spoke::flush() {
  errno = 0;
  return stream_->flush();
}

void Spoke::receive() {
  errno = 0;
  const bool alive = stream_->fill();
  const int error = errno;
  while (stream_) {
    std::optional<Message> message;
    if (!stream_->channel().next(&message).ok()) return lose(0);
    if (!message) break;
    handle(*message);
  }
  if (stream_ && !alive) lose(error);
}

void Spoke::handle(const Message& message) {
  const std::lock_guard lock(mutex_);
  Status cause;
  Ending ending;
  Part part;
  News news;
  if (message.type == MessageType::Query) {
    stream_->channel().send(MessageType::Report, encode(ownPage()));
  } else if (message.type == MessageType::Report && decode(message.body, ended_.size(), &news)) {
    takeNews(news);
  } else if (message.type == MessageType::Verdict && decode(message.body, &cause)) {
    takeVerdict(cause);
  } else if (message.type == MessageType::Gathered && decode(message.body, ended_.size(), &part)) {
    takePart(std::move(part));
  } else if (message.type == MessageType::Ended && decode(message.body, ended_.size(), &ending)) {
    ended_[ending.rank] = Status::error(Code::RemoteError, ending.why);
  } else if (message.type == MessageType::Bye) {
    gone_ = true;
    stream_.reset();
  }
  changed_.notify_all();
}

// One that this rank published itself, because the hub was slow, is overruled by any but a lost
// link.
void Spoke::takeVerdict(const Status& cause) {
  if (!publishVerdict(cause, &verdict_) && !isMendable(cause)) overruled_ = cause;
  if (own_ != nullptr) doorbellRing(*own_);
}

void Spoke::takePart(Part part) {
  if (part.last)
    leftEarly_[part.rank] = true;
  else
    parts_[part.rank].push_back(std::move(part.bytes));
}

void Spoke::takeNews(const News& news) {
  for (const News::Entry& entry : news.entries) {
    silence_[entry.rank] = milliseconds(entry.silenceMs);
    if (ControlPage* const mirror = mirrors_[entry.rank]) writePage(entry.page, mirror);
  }
  askedSince_.reset();
  ++answers_;
}

void Spoke::lose(int error) {
  const std::lock_guard lock(mutex_);
  const Switchboard::Loss loss = lossOf(*stream_, error);
  stream_.reset();
  gone_ = true;
  if (!goodbye_) noteLossOfHub(loss);
  changed_.notify_all();
}

// Whoever is cut off from the hub is cut off from other hosts, as far as anybody can tell it.
void Spoke::noteLossOfHub(const Switchboard::Loss& loss) {
  if (loss.kind == Switchboard::Loss::Closed) {
    ended_[0] = hasEnded(names_[0]);
    return;
  }
  const std::string& here = names_[rank_].host;
  const Status cause = Status::error(
      Code::RemoteError, text("host ", names_[0].host, " of rank 0 unreachable from host ", here,
                              " for ", inSeconds(loss.silence), ": its uplink or that of host ",
                              here, " is down; fix: look at the network of both"));
  for (std::uint32_t r = 0; r < ended_.size(); ++r) {
    if (names_[r].host != here && ended_[r].ok()) ended_[r] = cause;
  }
}

}  // namespace weft
