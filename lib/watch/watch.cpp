// SPDX-License-Identifier: Apache-2.0
#include "watch/watch.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "watch/call_records.h"
#include "watch/crowd.h"
#include "watch/patience.h"

namespace weft::watch {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostNamed = 4;  // late ranks told with their last calls

}  // namespace

Watch::Watch(transport::Transport& transport, std::uint32_t rank,
             const std::vector<PeerName>& names, std::string commName, RemoteRanks* remote)
    : transport_(transport),
      rank_(rank),
      names_(names),
      commName_(std::move(commName)),
      mine_(transport.own().control()),
      remote_(remote),
      firstError_(remote ? &remote->firstError() : &transport.control(0)->firstError),
      liveness_(transport, names),
      endSeen_(names.size(), 0),
      silence_(names_, remote) {}

void Watch::enterPairs(int timeoutMs, const char* label) {
  inPairs_ = true;
  mine_.inPairs.store(1, std::memory_order_seq_cst);
  beginWait(timeoutMs, label);
}

Status Watch::settleError(const Status& status) {
  const bool harmless =
      status.code() == Code::InvalidArgument || status.code() == Code::InvalidUsage;
  Status firstError = status;
  if (!harmless) firstError = status.code() == Code::RemoteError ? lost(status) : declare(status);
  leave();
  if (!harmless) awaitOthers();
  return firstError;
}

// May the peer still touch buffers of this rank? One whose page is a mirror never does.
bool Watch::isInside(std::uint32_t peer) const {
  const transport::ControlPage* page = transport_.control(peer);
  return peer != rank_ && page != nullptr && !transport_.isMirrored(peer) &&
         (page->inCall.load(std::memory_order_acquire) != 0 ||
          page->inPairs.load(std::memory_order_acquire) != 0) &&
         !liveness_.isStill(peer);
}

void Watch::awaitOthers() const {
  const std::lock_guard lock(looking_);
  const Clock::time_point until = Clock::now() + kLeavePatience;
  // After a moment, a rank that was just entering the call is seen, or has seen the first error.
  std::this_thread::sleep_for(kLeaveLook);
  for (std::uint32_t r = 0; r < names_.size(); ++r)
    while (isInside(r) && Clock::now() < until) std::this_thread::sleep_for(kLeaveLook);
}

Status Watch::firstError() const {
  if (unshared_.load(std::memory_order_acquire)) return unsharedError_;
  const Status first = statusOf(*firstError_);
  if (remote_ == nullptr || !isRecoverable(first)) return first;
  const Status overruled = remote_->overruled();
  return overruled.ok() ? first : overruled;
}

Status Watch::declare(const Status& cause) {
  if (remote_ && (!published() || overrules(cause, firstError()))) remote_->propose(cause);
  if (publishFirstError(cause, firstError_))
    for (std::uint32_t r = 0; r < names_.size(); ++r) transport_.wake(r);
  const Clock::time_point until = Clock::now() + kFirstErrorPatience;
  while (!isBroken() && Clock::now() < until) std::this_thread::yield();
  if (!isBroken()) keep(cause);
  return firstError();
}

void Watch::keep(const Status& cause) {
  const std::lock_guard lock(sharing_);
  if (unshared_.load(std::memory_order_relaxed)) return;
  unsharedError_ = cause;
  unshared_.store(true, std::memory_order_release);
}

Status Watch::abort() {
  return declare(Status::error({.code = Code::Aborted,
                                .who = names_[rank_],
                                .what = text("communicator ", commName_, " was aborted by {who}"),
                                .fix = "destroy it and create a new one"}));
}

std::string Watch::currentCall() const {
  std::string line = "point-to-point call";
  if (!inPairs_) {
    std::uint64_t fingerprint = 0;
    readCall(mine_, seq_, &fingerprint, &line);
    line += text(" #", seq_);
  }
  line += text(" on communicator ", commName_);
  if (label_) line += text(" (", label_, ")");
  return line;
}

Status Watch::finish(int timeoutMs) {
  if (!ahead_) return {};
  inPairs_ = false;
  beginWait(timeoutMs, "to finish");
  if (remote_) remote_->refresh(kAnswerPatience);
  for (std::uint32_t r = 0; r < names_.size(); ++r)
    for (; r != rank_ && isMissed(r, true, {}); std::this_thread::sleep_for(kLeaveLook))
      WEFT_TRY(trouble(r));
  awaitAgreement();
  WEFT_TRY(compareCalls(seq_));
  return firstError();
}

// What a rank that has not made this call was last seen to do.
std::string Watch::lastSeen(std::uint32_t rank) const {
  const transport::ControlPage& page = *transport_.control(rank);
  const std::uint64_t last = page.callSeq.load(std::memory_order_acquire);
  std::uint64_t fingerprint = 0;
  std::string words;
  if (last == 0 || !readCall(page, last, &fingerprint, &words))
    return text(names_[rank], " made no call yet");
  const bool inside = page.inCall.load(std::memory_order_relaxed) != 0;
  return text(names_[rank], inside ? " is in " : " last did ", words, " #", last);
}

// Who holds up this call: one of the ranks that have not made it, and their last calls tell which.
// Whether a silent rank has made it is unknown; if rank 0 is silent, that is so for all remote ranks.
// Stopped ranks come first: others may be late because they wait for them. Of those who are missing,
// who is waited for is to blame unless it is in a call itself, else who is furthest behind.
ErrorData Watch::whoIsLate(std::uint32_t waitingFor) const {
  ErrorData data{.code = Code::Timeout, .call = currentCall()};
  std::vector<std::uint32_t>& missing = data.missing;
  const bool stale = silence_.isOf(0);
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    transport::ControlPage* page = transport_.control(r);
    if (silence_.isOf(r) || inPairs_ || !page || (stale && transport_.isMirrored(r))) continue;
    if (page->callSeq.load(std::memory_order_acquire) < seq_) missing.push_back(r);
  }
  const std::vector<Liveness::Stopped> stopped = liveness_.stopped();
  const auto calls = [&](std::uint32_t r) { return transport_.control(r)->callSeq.load(); };
  if (!missing.empty()) data.who = names_[*std::ranges::min_element(missing, {}, calls)];
  if (std::ranges::count(missing, waitingFor) != 0 &&
      !transport_.control(waitingFor)->inCall.load())
    data.who = names_[waitingFor];
  if (!stopped.empty()) data.who = stopped[0].who;
  std::vector<std::string> parts;
  for (const Liveness::Stopped& one : stopped) parts.push_back(one.line);
  if (!missing.empty()) parts.push_back("{missing} did not call it");
  for (std::size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i)
    parts.push_back(lastSeen(missing[i]));
  if (std::string line = silence_.words(silence_.ranks()); !line.empty())
    parts.push_back(std::move(line));
  data.what = joined(parts, "; ", std::identity());
  return data;
}

Status Watch::late(std::uint32_t waitingFor) {
  if (remote_) remote_->refresh(kAnswerPatience);
  ErrorData data = whoIsLate(waitingFor);
  if (data.what.empty()) data.what = text("waiting for ", names_[waitingFor]);
  if (data.who.rank < 0) data.who = names_[waitingFor];
  data.what = text("{call} timed out after ", timeoutMs_, " ms: ", data.what);
  data.fix = "find out why it is late, or raise WEFT_TIMEOUT_MS";
  return Status::error(std::move(data));
}

// Whom a collective waits for while data moves changes all the time and says nothing. Who receives with the longest
// deadline that there is listens for whatever may come.
void Watch::warnIfLong(std::uint32_t waitingFor) {
  const bool listens = inPairs_ && timeoutMs_ == std::numeric_limits<int>::max();
  if (listens || Clock::now() - since_ < warnAfter_) return;
  ErrorData data = whoIsLate(waitingFor);
  if (data.what.empty())
    data.what =
        inPairs_ ? text("waiting for ", names_[waitingFor]) : "all ranks have come and are at it";
  data.what = text("{call}: waiting for ", warnAfter_.count(), " s; ", data.what);
  logWarn(Status::error(std::move(data)).text());
  warnAfter_ *= 2;
}

Status Watch::trouble(std::uint32_t waitingFor, const Needs& needs) {
  const std::lock_guard lock(looking_);
  const SpeaksFor rank(rank_);
  const Clock::time_point now = Clock::now();
  if (!waiting_) {
    waiting_ = true;
    since_ = now;
    nextLook_ = now;
    nextAsk_ = now + kAskFirst;
    askEvery_ = kAskFirst;
    warnAfter_ = std::chrono::seconds(10);
    silence_.beginWait();
  }
  if (isBroken()) return declare(firstError());
  if (remote_) askRemoteRanks(now);
  if (now >= nextLook_) {  // at every rank's page
    nextLook_ = now + kLookEvery;
    if (!inPairs_) WEFT_TRY(compareCalls(seq_));
    WEFT_TRY(lookForDead(true, needs));
    WEFT_TRY(lookForLeavers(needs));
  }
  if (now - since_ >= milliseconds(timeoutMs_)) return declare(late(waitingFor));
  warnIfLong(waitingFor);
  return {};
}

void Watch::askRemoteRanks(Clock::time_point now) {
  if (now < nextAsk_) return;
  askEvery_ = std::min(2 * askEvery_, kAskAtMost);
  nextAsk_ = now + askEvery_;
  remote_->refresh(milliseconds(0));
  if (const std::vector<std::uint32_t> news = silence_.news(); !news.empty())
    logWarn(currentCall(), ": ", silence_.words(news));
}

// Does the end of `peer` keep this rank from finishing? Not if the peer has done its part of this
// call, whose bytes lie here already, or has destroyed its end.
bool Watch::isMissed(std::uint32_t peer, bool inCall, const Needs& needs) const {
  const transport::ControlPage* page = transport_.control(peer);
  if (page == nullptr) return true;
  if (!inCall) return page->left.load(std::memory_order_acquire) == 0;
  if (inPairs_) return !needs || needs(peer);
  const std::uint64_t seq = page->callSeq.load(std::memory_order_acquire);
  return seq < seq_ || (seq == seq_ && page->inCall.load(std::memory_order_acquire) != 0);
}

bool Watch::endSeenBefore(std::uint32_t peer) {
  if (endSeen_[peer] == 0) endSeen_[peer] = looks_;
  return endSeen_[peer] < looks_;
}

// A loss counts when it is seen twice: in between, everything that the dead had sent is looked at.
Status Watch::lookForDead(bool inCall, const Needs& needs) {
  ++looks_;
  const Needs matters = [&](std::uint32_t peer) {
    return isMissed(peer, inCall, needs) && endSeenBefore(peer);
  };
  Status dead = liveness_.check(matters);
  if (dead.ok() && remote_) dead = farDeath(matters);
  if (dead.ok()) return {};
  if (inCall) WEFT_TRY(lookForLeavers(needs));  // destroyed its end before it ended: says more
  ErrorData data = dead.data();
  if (inCall) {
    data.call = currentCall();
    data.what += ", during {call}";
  }
  data.fix += "; restart the job from its last checkpoint";
  return declare(Status::error(std::move(data)));
}

Status Watch::farDeath(const Needs& matters) const {
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    const Status ended = remote_->ended(r);
    if (!ended.ok() && matters(r)) return ended;
  }
  return {};
}

Status Watch::lost(const Status& symptom) {
  const std::lock_guard lock(looking_);
  const auto patience = std::chrono::duration_cast<milliseconds>(crowd() * kDeathPatience);
  const Clock::time_point until = Clock::now() + patience;
  do {
    if (isBroken()) return declare(firstError());
    WEFT_TRY(lookForDead(true));
    std::this_thread::sleep_for(milliseconds(1));
  } while (Clock::now() < until);
  ErrorData data = symptom.data();
  data.code = remote_ ? Code::LinkLost : Code::RemoteError;
  data.call = currentCall();
  if (data.who.rank >= 0) data.who = names_[static_cast<std::size_t>(data.who.rank)];
  return declare(Status::error(std::move(data)));
}

Status Watch::lookAround() {
  if (isBroken()) return declare(firstError());
  const std::unique_lock lock(looking_, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  WEFT_TRY(lookForDead(false));
  return lookForDead(false);
}

// Has a rank that has destroyed its end not made this call, or not its part of a transfer?
bool Watch::isAwaited(std::uint32_t leaver, const Needs& needs) {
  if (!inPairs_) return transport_.control(leaver)->callSeq.load(std::memory_order_acquire) < seq_;
  return needs && needs(leaver) && endSeenBefore(leaver);
}

Status Watch::lookForLeavers(const Needs& needs) {
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    const transport::ControlPage* page = transport_.control(r);
    if (page == nullptr || page->left.load(std::memory_order_acquire) == 0) continue;
    if (!isAwaited(r, needs)) continue;
    return declare(Status::error(
        {.code = Code::RemoteError,
         .who = names_[r],
         .call = currentCall(),
         .what = "{who} has destroyed its end of the communicator; {call} waits for it",
         .fix = inPairs_ ? "match each send with a receive before destroying an end"
                         : "make the same calls on every rank"}));
  }
  return {};
}

void leaveForGood(transport::Transport& transport, RemoteRanks* remote) {
  transport.own().control().left.store(1, std::memory_order_release);
  if (remote) remote->leave();
  for (std::uint32_t r = 0; r < transport.layout().ranks; ++r) transport.wake(r);
}

}  // namespace weft::watch
