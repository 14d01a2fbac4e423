// SPDX-License-Identifier: Apache-2.0
#include "control/control_client.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "control/bodies.h"
#include "control/link_socket.h"
#include "transports/doorbell.h"
#include "watch/crowd.h"
#include "watch/first_error.h"

namespace weft::control {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstErrorPatience{250};
constexpr std::int64_t kGoodbyeMs = 1000;
constexpr milliseconds kRelayPatience{1000};
constexpr std::int64_t kForeverMs = std::int64_t{24} * 3600 * 1000;
constexpr milliseconds kOrphanPatience{250};  // for what ranks had sent before the server died

// Longer where a relay may have to wait for a core, but not for long: to pass it costs little.
milliseconds relayPatience() {
  return std::chrono::duration_cast<milliseconds>(std::min(watch::crowd(), 4.0) * kRelayPatience);
}

}  // namespace

ControlClient::ControlClient(const transport::TransportSetup& setup,
                             transport::Transport& transport, std::unique_ptr<net::Stream> stream,
                             std::uint32_t leader, Reach reach)
    : rank_(setup.rank),
      leader_(leader),
      names_(setup.names),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stream_(std::move(stream)),
      reach_(std::move(reach)),
      own_(&transport.own().control()),
      silence_(setup.ranks),
      ended_(setup.ranks),
      parts_(setup.ranks),
      leftEarly_(setup.ranks) {
  for (std::uint32_t r = 0; r < setup.ranks; ++r)
    mirrors_.push_back(transport.isMirrored(r) ? transport.control(r) : nullptr);
  watchClosely(stream_->socket());
}

// ---- any thread ----

void ControlClient::wake() {
  const std::uint64_t one = 1;
  (void)!::write(bell_.fd(), &one, sizeof one);
}

void ControlClient::propose(const Status& cause) {
  std::unique_lock lock(mutex_);
  const bool late = watch::isPublished(firstError_);
  if (late && !watch::overrules(cause, watch::statusOf(firstError_))) return;
  if (!wishes_.cause) wishes_.cause = cause;
  wake();
  changed_.wait_until(lock, Clock::now() + kFirstErrorPatience, [&] {
    return gone_ || (late ? !overruled_.ok() : watch::isPublished(firstError_));
  });
  if (late && overruled_.ok()) overruled_ = cause;  // nobody can be told
}

Status ControlClient::overruled() const {
  const std::lock_guard lock(mutex_);
  return overruled_;
}

Status ControlClient::gather(std::span<const std::byte> mine,
                             std::vector<std::vector<std::byte>>* all, Deadline deadline) {
  if (mine.size() > bootstrap::kMaxPartBytes)
    return Status::error(Code::InternalError, "part of ", mine.size(), " bytes in a round");
  std::unique_lock lock(mutex_);
  wishes_.parts.emplace_back(mine.begin(), mine.end());
  wake();
  Status never;
  const bool settled = changed_.wait_until(lock, deadline.at(), [&] {
    never = whyIncomplete();
    return !never.ok() || missing().empty();
  });
  if (!settled)
    return Status::error({.code = Code::Timeout,
                          .missing = missing(),
                          .what = "{missing} did not make a call in time"});
  WEFT_TRY(never);
  all->clear();
  for (std::deque<net::Bytes>& parts : parts_) {
    all->push_back(std::move(parts.front()));
    parts.pop_front();
  }
  return {};
}

std::vector<std::uint32_t> ControlClient::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < parts_.size(); ++r)
    if (parts_[r].empty()) ranks.push_back(r);
  return ranks;
}

// OK as long as those who are missing may still come.
Status ControlClient::whyIncomplete() const {
  if (!overruled_.ok()) return overruled_;
  for (const std::uint32_t r : missing()) {
    if (!ended_[r].ok()) return ended_[r];
    if (leftEarly_[r])
      return Status::error({.code = Code::RemoteError,
                            .who = names_[r],
                            .what = "{who} has destroyed its end of the communicator"});
    if (gone_) return hasEnded(names_[0]);
  }
  return {};
}

void ControlClient::refresh(milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (gone_) return;
  if (!askedSince_) {
    askedSince_ = Clock::now();
    wishes_.query = true;
    wake();
  }
  if (patience == milliseconds::zero()) return;
  const std::uint64_t before = answers_;
  changed_.wait_until(lock, Clock::now() + patience, [&] {
    return answers_ != before || watch::isPublished(firstError_) || gone_;
  });
}

Status ControlClient::ended(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  const bool orphaned = orphanedSince_ && Clock::now() - *orphanedSince_ > kOrphanPatience;
  if (!ended_[rank].ok() || !orphaned || mirrors_[rank] == nullptr) return ended_[rank];
  if (rank == orphanedBy_) return hasEnded(names_[rank]);
  return Status::error({.code = Code::RemoteError,
                        .who = names_[orphanedBy_],
                        .missing = {rank},
                        .what = "{who}, who tells ranks of each other, has ended: its connection "
                                "closed; whether {missing} is still there nobody can tell",
                        .fix = "look at the output of both"});
}

// While the server owes an answer, nobody knows of the others whether they would answer; nor of it,
// while a relay that is between shows no life.
milliseconds ControlClient::silence(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  if (gone_ || rank == rank_) return milliseconds::zero();
  if (relaySince_ && Clock::now() - *relaySince_ >= relayPatience_)
    return rank == leader_ ? std::chrono::duration_cast<milliseconds>(Clock::now() - *relaySince_)
                           : silence_[rank];
  if (!askedSince_) return silence_[rank];
  const auto server = std::chrono::duration_cast<milliseconds>(Clock::now() - *askedSince_);
  return rank == 0 ? std::max(server, silence_[0]) : silence_[rank];
}

std::uint64_t ControlClient::parting() const {
  const std::lock_guard lock(mutex_);
  return parting_;
}

bool ControlClient::knowsAgreement() const {
  const std::lock_guard lock(mutex_);
  return knowsAgreement_ || gone_;
}

void ControlClient::leave() {
  const std::lock_guard lock(mutex_);
  wishes_.leave = true;
  wake();
}

void ControlClient::detach() {
  const std::lock_guard lock(mutex_);
  if (own_ != nullptr) last_ = readPage(*own_, true);
  last_.left = true;
  own_ = nullptr;
  std::ranges::fill(mirrors_, nullptr);
  wishes_.leave = true;
  wake();
}

// ---- the thread ----

void ControlClient::run(const net::StopSignal& stop) {
  while (stream_) {
    wait(stop);
    takeWishes(stop.raised());
    receive();
    if (stream_ && !stream_->flush()) lose();
    if (relayDue_ && relayDue_->expired()) passStuckRelay();
    if (goodbye_ && goodbye_->expired() && !(reach_ && passRelay().ok())) stream_.reset();
  }
}

void ControlClient::wait(const net::StopSignal& stop) {
  pollfd entries[] = {
      stream_->pollEntry(), {bell_.fd(), POLLIN, 0}, {goodbye_ ? -1 : stop.fd(), POLLIN, 0}};
  const Deadline limit = goodbye_.value_or(Deadline::in(kForeverMs));
  (void)::poll(entries, std::size(entries),
               relayDue_.value_or(limit).orSooner(limit).pollTimeoutMs());
  std::uint64_t rings = 0;
  (void)!::read(bell_.fd(), &rings, sizeof rings);
}

void ControlClient::takeWishes(bool processEnds) {
  const std::lock_guard lock(mutex_);
  net::Channel& channel = stream_->channel();
  const bool expectsWord =
      wishes_.query || (wishes_.cause && !watch::isRecoverable(*wishes_.cause));
  if (reach_ && expectsWord && !relayDue_) {
    relayPatience_ = relayPatience();
    relaySince_ = Clock::now();
    relayDue_ = Deadline::in(relayPatience_);
  }
  if (std::exchange(wishes_.query, false))
    channel.send(net::MessageType::Query, encode(ownPage(false)));
  if (wishes_.cause) {
    channel.send(net::MessageType::Failed, bootstrap::encode(*wishes_.cause));
    proposed_ = std::exchange(wishes_.cause, std::nullopt);
  }
  for (net::Bytes& part : wishes_.parts) channel.send(net::MessageType::Gather, std::move(part));
  wishes_.parts.clear();
  if (goodbye_ || !(wishes_.leave || processEnds)) return;
  channel.send(net::MessageType::Report, encode(ownPage(false)));
  channel.send(net::MessageType::Bye, net::Bytes());
  goodbye_ = Deadline::in(kGoodbyeMs);  // until the server has read it, and closes
}

PageReport ControlClient::ownPage(bool withCalls) const {
  if (own_ != nullptr) return readPage(*own_, withCalls);
  PageReport page = last_;
  if (!withCalls) page.calls.clear();
  return page;
}

void ControlClient::receive() {
  const bool alive = stream_->fill();
  while (stream_) {
    std::optional<net::Message> message;
    if (!stream_->channel().next(&message).ok()) return lose();
    if (!message) break;
    handle(*message);
  }
  if (stream_ && !alive) lose();
}

void ControlClient::handle(const net::Message& message) {
  const std::lock_guard lock(mutex_);
  relayDue_.reset();
  relaySince_.reset();
  Status cause;
  Ending ending;
  Part part;
  News news;
  Loss loss;
  if (message.type == net::MessageType::Query) {
    stream_->channel().send(net::MessageType::Report, encode(ownPage(!message.body.empty())));
  } else if (message.type == net::MessageType::Report &&
             decode(message.body, ended_.size(), &news)) {
    takeNews(news);
  } else if (message.type == net::MessageType::Error && bootstrap::decode(message.body, &cause)) {
    takeFirstError(cause);
  } else if (message.type == net::MessageType::Gathered &&
             decode(message.body, ended_.size(), &part)) {
    takePart(std::move(part));
  } else if (message.type == net::MessageType::Ended &&
             decode(message.body, ended_.size(), &ending)) {
    ending.ranks.forEach(
        [&](std::uint32_t r) { ended_[r] = ending.why.ok() ? hasEnded(names_[r]) : ending.why; });
  } else if (message.type == net::MessageType::Bye) {
    if (decode(message.body, &loss) && !goodbye_) noteLossOfServer(loss);
    gone_ = true;
    stream_.reset();
  }
  changed_.notify_all();
}

// One that this rank published itself, because the server was slow, gives way to any but a lost
// link.
void ControlClient::takeFirstError(const Status& cause) {
  proposed_.reset();
  if (!watch::publishFirstError(cause, &firstError_) && !watch::isRecoverable(cause))
    overruled_ = cause;
  if (own_ != nullptr) transport::doorbellRing(*own_);
}

void ControlClient::takePart(Part part) {
  if (part.last)
    leftEarly_[part.rank] = true;
  else
    parts_[part.rank].push_back(std::move(part.bytes));
}

void ControlClient::takeNews(const News& news) {
  for (const News::Group& group : news.groups) {
    const PageReport page = reportOf(group);
    group.ranks.forEach([&](std::uint32_t r) {
      silence_[r] = milliseconds::zero();
      if (mirrors_[r] != nullptr) writePage(page, mirrors_[r]);
    });
    if (group.parting)
      parting_ = std::min(parting_ == 0 ? group.parting->seq : parting_, group.parting->seq);
  }
  for (const News::Silence& silence : news.silences)
    silence.ranks.forEach([&](std::uint32_t r) { silence_[r] = milliseconds(silence.ms); });
  if (!news.whole) return;
  knowsAgreement_ = news.settled;
  askedSince_.reset();
  ++answers_;
}

// A group whose last call this rank has made as well needs no description: same fingerprint, same
// calls.
PageReport ControlClient::reportOf(const News::Group& group) const {
  PageReport page{.callSeq = group.last.seq,
                  .fingerprint = group.last.fingerprint,
                  .inCall = group.inCall,
                  .left = group.left,
                  .calls = {}};
  if (group.parting) page.calls.push_back(*group.parting);
  if (group.last.seq == 0 || group.last.fingerprint == 0) return page;
  page.calls.push_back(group.last);
  if (group.described) return page;
  const PageReport::Call mine =
      own_ != nullptr ? readCall(*own_, group.last.seq) : PageReport::Call();
  if (mine.fingerprint == group.last.fingerprint)
    page.calls.back() = mine;
  else
    page.calls.back().what = watch::kUnknownWords;
  return page;
}

void ControlClient::lose() {
  const Loss loss = lossOf(*stream_);
  if (reach_ && passLostRelay()) return;
  const std::lock_guard lock(mutex_);
  stream_.reset();
  gone_ = true;
  if (!goodbye_ && reach_)
    noteOrphaned(leader_);
  else if (!goodbye_)
    noteLossOfServer(loss);
  changed_.notify_all();
}

// To the server itself. What was on its way may be lost, so it is said again; what the server said,
// it repeats.
Status ControlClient::passRelay() {
  std::unique_ptr<net::Stream> direct;
  WEFT_TRY(reach_(&direct));
  reach_ = nullptr;
  relayDue_.reset();
  stream_ = std::move(direct);
  watchClosely(stream_->socket());
  const std::lock_guard lock(mutex_);
  relaySince_.reset();
  orphanedSince_.reset();
  wishes_.query = wishes_.query || askedSince_;
  if (!wishes_.cause) wishes_.cause = proposed_;
  wishes_.leave = wishes_.leave || goodbye_.has_value();
  goodbye_.reset();
  wake();
  return {};
}

// The server may have ended, too, and then nobody is told in time, unless it is said before the search
// ends.
bool ControlClient::passLostRelay() {
  {
    const std::lock_guard lock(mutex_);
    orphanedBy_ = leader_;
    orphanedSince_ = Clock::now() + relayPatience();
  }
  return passRelay().ok();
}

// Recovery waits for all ranks, the one that is stuck with the relay among them, and parts that are
// on their way must not be lost.
void ControlClient::passStuckRelay() {
  relayDue_.reset();
  if (isRecovering() || passRelay().ok()) return;
  relayDue_ = Deadline::in(kRelayPatience);  // again
}

bool ControlClient::isRecovering() const {
  return watch::isPublished(firstError_) && watch::isRecoverable(watch::statusOf(firstError_));
}

// By the end of that rank, the server's or the relay's. In the second case the server could not be
// found, which may have had the best of reasons to end.
void ControlClient::noteOrphaned(std::uint32_t by) {
  ended_[by] = hasEnded(names_[by]);
  orphanedBy_ = by;
  orphanedSince_ = Clock::now();
}

// A rank that cannot reach the server hears of no other host.
void ControlClient::noteLossOfServer(const Loss& loss) {
  if (loss.kind == Loss::Closed) return noteOrphaned(0);
  const std::string& here = names_[rank_].host;
  const Status cause = Status::error(
      {.code = Code::RemoteError,
       .who = {-1, names_[0].host},
       .what = text("{who} of rank 0 unreachable from host ", here, " for ",
                    inSeconds(loss.silence), ": its uplink or that of host ", here, " is down"),
       .fix = "look at the network of both"});
  for (std::uint32_t r = 0; r < ended_.size(); ++r)
    if (names_[r].host != here && ended_[r].ok()) ended_[r] = cause;
}

}  // namespace weft::control
