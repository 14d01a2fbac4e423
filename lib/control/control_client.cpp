// SPDX-License-Identifier: Apache-2.0
#include "control/control_client.h"

#include <algorithm>
#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "control/bodies.h"
#include "transports/doorbell.h"
#include "watch/first_error.h"

namespace weft::control {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstErrorPatience{250};
constexpr milliseconds kOrphanPatience{250};  // for what ranks had sent before the server died

// Without memory no calls: who asks for one of them is told less.
PageReport lastOf(const transport::ControlPage& page) noexcept {
  try {
    return readPage(page, true);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

ControlClient::ControlClient(const transport::TransportSetup& setup,
                             transport::Transport* transport, std::shared_ptr<LinkEnd> link,
                             std::uint32_t leader, std::uint32_t group)
    : rank_(setup.rank),
      group_(group),
      leader_(leader),
      names_(setup.names),
      link_(std::move(link)),
      shared_(link_->shared()),
      own_(transport != nullptr ? &transport->own().control() : nullptr),
      silence_(setup.ranks),
      ended_(setup.ranks),
      parts_(setup.ranks),
      leftEarly_(setup.ranks) {
  for (std::uint32_t r = 0; r < setup.ranks; ++r)
    mirrors_.push_back(transport != nullptr && transport->isMirrored(r) ? transport->control(r)
                                                                        : nullptr);
  last_.left = own_ == nullptr;
}

// ---- any thread ----

void ControlClient::propose(const Status& cause) {
  std::unique_lock lock(shared_.mutex);
  const bool late = watch::isPublished(firstError_);
  if (late && !watch::overrules(cause, watch::statusOf(firstError_))) return;
  if (!wishes_.cause) wishes_.cause = cause;
  link_->wake();
  shared_.changed.wait_until(lock, Clock::now() + kFirstErrorPatience, [&] {
    return shared_.gone || (late ? !overruled_.ok() : watch::isPublished(firstError_));
  });
  if (late && overruled_.ok()) overruled_ = cause;  // nobody can be told
}

Status ControlClient::overruled() const {
  const std::lock_guard lock(shared_.mutex);
  return overruled_;
}

Status ControlClient::gather(std::span<const std::byte> mine,
                             std::vector<std::vector<std::byte>>* all, Deadline deadline) {
  if (mine.size() > bootstrap::kMaxPartBytes)
    return Status::error(Code::InternalError, "part of ", mine.size(), " bytes in a round");
  std::unique_lock lock(shared_.mutex);
  wishes_.parts.emplace_back(mine.begin(), mine.end());
  link_->wake();
  Status never;
  const bool settled = shared_.changed.wait_until(lock, deadline.at(), [&] {
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
  if (watch::isPublished(firstError_) && !isRecovering()) return watch::statusOf(firstError_);
  for (const std::uint32_t r : missing()) {
    if (!ended_[r].ok()) return ended_[r];
    if (leftEarly_[r])
      return Status::error({.code = Code::RemoteError,
                            .who = names_[r],
                            .what = "{who} has destroyed its end of the communicator"});
    if (shared_.gone) return hasEnded(names_[0]);
  }
  return {};
}

void ControlClient::refresh(milliseconds patience) {
  std::unique_lock lock(shared_.mutex);
  if (shared_.gone) return;
  if (!askedSince_) {
    askedSince_ = Clock::now();
    wishes_.query = true;
    link_->wake();
  }
  if (patience == milliseconds::zero()) return;
  const std::uint64_t before = answers_;
  shared_.changed.wait_until(lock, Clock::now() + patience, [&] {
    return answers_ != before || watch::isPublished(firstError_) || shared_.gone;
  });
}

Status ControlClient::ended(std::uint32_t rank) const {
  const std::lock_guard lock(shared_.mutex);
  const auto& since = shared_.orphanedSince;
  const bool orphaned = since && Clock::now() - *since > kOrphanPatience;
  if (!ended_[rank].ok() || !orphaned || mirrors_[rank] == nullptr) return ended_[rank];
  const std::uint32_t by = orphanedBy();
  if (rank == by) return hasEnded(names_[rank]);
  return Status::error({.code = Code::RemoteError,
                        .who = names_[by],
                        .missing = {rank},
                        .what = "{who}, who tells ranks of each other, has ended: its connection "
                                "closed; whether {missing} is still there nobody can tell",
                        .fix = "look at the output of both"});
}

// While the server owes an answer, nobody knows of the others whether they would answer; nor of it,
// while a relay that is between shows no life.
milliseconds ControlClient::silence(std::uint32_t rank) const {
  const std::lock_guard lock(shared_.mutex);
  if (shared_.gone || rank == rank_) return milliseconds::zero();
  const auto& relaySince = shared_.relaySince;
  if (relaySince && Clock::now() - *relaySince >= shared_.relayPatience)
    return rank == leader_ ? std::chrono::duration_cast<milliseconds>(Clock::now() - *relaySince)
                           : silence_[rank];
  if (!askedSince_) return silence_[rank];
  const auto server = std::chrono::duration_cast<milliseconds>(Clock::now() - *askedSince_);
  return rank == 0 ? std::max(server, silence_[0]) : silence_[rank];
}

std::uint64_t ControlClient::parting() const {
  const std::lock_guard lock(shared_.mutex);
  return parting_;
}

bool ControlClient::knowsAgreement() const {
  const std::lock_guard lock(shared_.mutex);
  return knowsAgreement_ || shared_.gone;
}

void ControlClient::leave() {
  const std::lock_guard lock(shared_.mutex);
  wishes_.leave = true;
  link_->wake();
}

void ControlClient::detach() {
  {
    const std::lock_guard lock(shared_.mutex);
    if (own_ != nullptr) last_ = lastOf(*own_);
    last_.left = true;
    own_ = nullptr;
    std::ranges::fill(mirrors_, nullptr);
    wishes_.leave = true;
    link_->wake();
  }
  place_ = {};
}

// ---- the link's thread, under its mutex ----

void ControlClient::send(net::Channel* channel, net::MessageType type, net::Bytes body) const {
  if (group_ == 0)
    channel->send(type, std::move(body));
  else
    channel->send(net::MessageType::Grouped, encodeGrouped(group_, type, body));
}

bool ControlClient::speak(net::Channel* channel) {
  using net::MessageType;
  const bool expectsWord =
      wishes_.query || (wishes_.cause && !watch::isRecoverable(*wishes_.cause));
  if (std::exchange(wishes_.introduction, false)) send(channel, MessageType::Info, {});
  if (std::exchange(wishes_.query, false))
    send(channel, MessageType::Query, encode(ownPage(false)));
  if (wishes_.cause) {
    send(channel, MessageType::Failed, bootstrap::encode(*wishes_.cause));
    proposed_ = std::exchange(wishes_.cause, std::nullopt);
  }
  for (net::Bytes& part : wishes_.parts) send(channel, MessageType::Gather, std::move(part));
  wishes_.parts.clear();
  return expectsWord;
}

void ControlClient::tellLast(net::Channel* channel) const {
  send(channel, net::MessageType::Report, encode(ownPage(false)));
}

// Once. Others on the link stay, so this says of which it is, also for the first.
void ControlClient::leaveGroup(net::Channel* channel) {
  if (!wishes_.leave || std::exchange(saidGoodbye_, true)) return;
  tellLast(channel);
  channel->send(net::MessageType::Grouped, encodeGrouped(group_, net::MessageType::Bye, {}));
}

// By another way than before.
void ControlClient::sayAgain() {
  wishes_.query = wishes_.query || askedSince_;
  if (!wishes_.cause) wishes_.cause = proposed_;
  saidGoodbye_ = false;
}

PageReport ControlClient::ownPage(bool withCalls) const {
  if (own_ != nullptr) return readPage(*own_, withCalls);
  PageReport page = last_;
  if (!withCalls) page.calls.clear();
  return page;
}

void ControlClient::handle(const net::Message& message, net::Channel* channel) {
  using net::MessageType;
  Status cause;
  Ending ending;
  Part part;
  News news;
  if (message.type == MessageType::Query) {
    send(channel, MessageType::Report, encode(ownPage(!message.body.empty())));
  } else if (message.type == MessageType::Report && decode(message.body, ended_.size(), &news)) {
    takeNews(news);
  } else if (message.type == MessageType::Error && bootstrap::decode(message.body, &cause)) {
    takeFirstError(cause);
  } else if (message.type == MessageType::Gathered && decode(message.body, ended_.size(), &part)) {
    takePart(std::move(part));
  } else if (message.type == MessageType::Ended && decode(message.body, ended_.size(), &ending)) {
    ending.ranks.forEach(
        [&](std::uint32_t r) { ended_[r] = ending.why.ok() ? hasEnded(names_[r]) : ending.why; });
  }
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

bool ControlClient::isRecovering() const {
  return watch::isPublished(firstError_) && watch::isRecoverable(watch::statusOf(firstError_));
}

std::uint32_t ControlClient::orphanedBy() const { return shared_.orphanedByRelay ? leader_ : 0; }

void ControlClient::noteOrphaned() { ended_[orphanedBy()] = hasEnded(names_[orphanedBy()]); }

// A rank that cannot reach the server hears of no other host.
void ControlClient::noteCutOff(const Loss& loss) {
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

// The link is of no more use, by a fault of this rank.
void ControlClient::noteFailure(const Status& why, net::Channel* channel) {
  const Status cause = within("control link: ", names_[rank_], why);
  takeFirstError(cause);
  send(channel, net::MessageType::Failed, bootstrap::encode(cause));
}

}  // namespace weft::control
