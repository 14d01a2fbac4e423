// SPDX-License-Identifier: Apache-2.0
#include "watch/watch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/rank_list.h"
#include "base/text.h"
#include "plan/call.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{5};         // for dead peers
constexpr std::size_t kMostNamed = 4;         // late ranks told with their last calls
constexpr milliseconds kWordsPatience{250};   // for the calls of ranks that come a little later
constexpr milliseconds kVerdictPatience{50};  // for the text of a verdict that is being written
constexpr milliseconds kLeavePatience{500};   // for ranks in the midst of a large copy
constexpr std::chrono::microseconds kLeaveLook{50};
constexpr milliseconds kDeathPatience{100};  // from a lost connection to the news of a death
// Far ranks are asked first after a wait that is longer than most, then more and more seldom.
constexpr milliseconds kAskFirst{20};
constexpr milliseconds kAskAtMost{500};
constexpr milliseconds kAskAgain{5};         // for words that have not come yet
constexpr milliseconds kAnswerPatience{30};  // for the last look before an error
constexpr milliseconds kSilence{3000};       // of a stopped or overloaded process

// The peer's record of call `seq`, if it has made that call. `words` may be null.
bool readCall(const ControlPage& page, std::uint64_t seq, std::uint64_t* fingerprint,
              std::string* words) {
  const CallRecord& record = page.calls[seq % kCallRecords];
  if (record.seq.load(std::memory_order_acquire) != seq) return false;
  *fingerprint = record.fingerprint.load(std::memory_order_acquire);
  if (words) *words = describe(record);
  return record.seq.load(std::memory_order_relaxed) == seq;
}

}  // namespace

Watch::Watch(Transport& transport, std::uint32_t rank, const std::vector<PeerName>& names,
             std::string commName, FarRanks* far)
    : transport_(transport),
      rank_(rank),
      commName_(std::move(commName)),
      mine_(transport.own().control()),
      far_(far),
      verdict_(far ? &far->verdict() : &transport.control(0)->verdict),
      liveness_(transport, names),
      endSeen_(names.size(), 0),
      silent_(names.size(), false) {
  for (const PeerName& n : names) names_.push_back(describe(n));
}

void Watch::enter(const Plan& plan, int timeoutMs, const char* label) {
  plan_ = &plan;
  ++seq_;
  CallRecord& record = mine_.calls[seq_ % kCallRecords];
  // Release each: whoever reads a field of this call no longer finds the number of an older one.
  record.seq.store(0, std::memory_order_relaxed);
  record.fingerprint.store(plan.fingerprint, std::memory_order_release);
  record.count.store(plan.count, std::memory_order_release);
  record.what.store(plan.what, std::memory_order_release);
  record.seq.store(seq_, std::memory_order_release);
  // In this order: whoever is killed in between must not look like one that has done its part.
  mine_.inCall.store(1, std::memory_order_relaxed);
  mine_.callSeq.store(seq_, std::memory_order_release);
  beginWait(timeoutMs, label);
}

void Watch::enterPairs(int timeoutMs, const char* label) {
  plan_ = nullptr;
  beginWait(timeoutMs, label);
}

void Watch::beginWait(int timeoutMs, const char* label) {
  timeoutMs_ = timeoutMs;
  label_ = label;
  waiting_ = false;
}

void Watch::leave() { mine_.inCall.store(0, std::memory_order_release); }

// Of a rank whose page is a mirror, no put goes into a caller's buffer.
bool Watch::isInside(std::uint32_t peer) const {
  const ControlPage* page = transport_.control(peer);
  return peer != rank_ && page != nullptr && !transport_.isMirrored(peer) &&
         page->inCall.load(std::memory_order_acquire) != 0 && !liveness_.isStill(peer);
}

void Watch::awaitOthers() const {
  if (plan_ == nullptr) return;  // messages go through slots
  const Clock::time_point until = Clock::now() + kLeavePatience;
  // First of all a moment: then whoever entered the call unseen is seen, or has seen the verdict.
  std::this_thread::sleep_for(kLeaveLook);
  for (std::uint32_t r = 0; r < names_.size(); ++r)
    while (isInside(r) && Clock::now() < until) std::this_thread::sleep_for(kLeaveLook);
}

Status Watch::verdict() const {
  const Status first = statusOf(*verdict_);
  if (far_ == nullptr || !isMendable(first)) return first;
  const Status overruled = far_->overruled();
  return overruled.ok() ? first : overruled;
}

Status Watch::declare(const Status& cause) {
  broken_.store(true, std::memory_order_relaxed);
  if (far_ && (!published() || overrules(cause, verdict()))) far_->propose(cause);
  if (publishVerdict(cause, verdict_)) {
    for (std::uint32_t r = 0; r < names_.size(); ++r) transport_.wake(r);
  }
  const Clock::time_point until = Clock::now() + kVerdictPatience;
  while (!published() && Clock::now() < until) std::this_thread::yield();
  return published() ? verdict() : cause;  // whoever was writing it died
}

Status Watch::abort() {
  return declare(
      Status::error(Code::Aborted, text("communicator ", commName_, " was aborted by ",
                                        names_[rank_], "; fix: destroy it and create a new one")));
}

std::string Watch::currentCall() const {
  std::string line = "point-to-point call";
  if (plan_) {
    std::uint64_t fingerprint = 0;
    readCall(mine_, seq_, &fingerprint, &line);
    line += text(" #", seq_);
  }
  line += text(" on communicator ", commName_);
  if (label_) line += text(" (", label_, ")");
  return line;
}

Status Watch::disagreement(std::uint32_t peer) {
  // The others enter within moments: wait for their words, but not for long.
  const Clock::time_point until = Clock::now() + kWordsPatience;
  std::map<std::string, std::vector<std::uint32_t>> callers;
  do {
    if (far_) far_->refresh(kAskAgain);
    callers.clear();
    for (std::uint32_t r = 0; r < names_.size(); ++r) {
      std::uint64_t fingerprint = 0;
      std::string words = "another algorithm";
      ControlPage* page = transport_.control(r);
      if (page && !readCall(*page, seq_, &fingerprint, &words)) words.clear();
      callers[words].push_back(r);
    }
  } while (callers.contains("") && Clock::now() < until);
  std::string line = text("mismatched collective #", seq_, " on communicator ", commName_, ":");
  for (const auto& [words, ranks] : callers) {
    line +=
        text(" ", rankList(ranks), words.empty() ? " did not call yet" : " called ", words, ";");
  }
  if (callers.size() == 1)
    line += text(
        " they differ in counts of single ranks, algorithm or reproducibility (seen from rank ",
        peer, ");");
  return declare(Status::error(Code::Mismatch, line + " fix: make the same call on every rank"));
}

Status Watch::compareCalls() {
  if (!plan_) return {};
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    ControlPage* page = transport_.control(r);
    std::uint64_t fingerprint = 0;
    if (page && readCall(*page, seq_, &fingerprint, nullptr) && fingerprint != plan_->fingerprint)
      return disagreement(r);
  }
  return {};
}

// What a rank that has not made this call was last seen to do.
std::string Watch::lastSeen(std::uint32_t rank) const {
  const ControlPage& page = *transport_.control(rank);
  const std::uint64_t last = page.callSeq.load(std::memory_order_acquire);
  std::uint64_t fingerprint = 0;
  std::string words;
  if (last == 0 || !readCall(page, last, &fingerprint, &words))
    return names_[rank] + " made no call yet";
  const bool inside = page.inCall.load(std::memory_order_relaxed) != 0;
  return text(names_[rank], inside ? " is in " : " last did ", words, " #", last);
}

// Of a far rank that has been asked for long; else empty.
std::string Watch::silenceOf(std::uint32_t rank) const {
  const milliseconds silence = far_ ? far_->silence(rank) : milliseconds(0);
  if (silence < kSilence) return {};
  return text(names_[rank], " does not answer for ", silence.count() / 1000,
              " s: stopped or overloaded");
}

// Who did not come: one of them holds up the others, and their last calls tell which. Of those that
// do not answer nobody knows whether they came, nor of any far rank if rank 0 is silent. A rank
// that is stopped comes first: others may be late because they wait for it.
std::string Watch::whoIsMissing(std::uint32_t waitingFor) const {
  std::vector<std::uint32_t> missing;
  std::vector<std::string> silent;
  const bool stale = !silenceOf(0).empty();
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    ControlPage* page = transport_.control(r);
    if (std::string line = silenceOf(r); !line.empty())
      silent.push_back(std::move(line));
    else if (plan_ && page && !(stale && far_->isFar(r)) &&
             page->callSeq.load(std::memory_order_acquire) < seq_)
      missing.push_back(r);
  }
  std::string line;
  for (const std::string& stopped : liveness_.stopped()) line += stopped + "; ";
  line += missing.empty() ? text("waiting for ", names_[waitingFor])
                          : rankList(missing) + " did not call it";
  for (std::size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i)
    line += "; " + lastSeen(missing[i]);
  for (std::size_t i = 0; i < std::min(silent.size(), kMostNamed); ++i) line += "; " + silent[i];
  return line;
}

Status Watch::late(std::uint32_t waitingFor) {
  if (far_) far_->refresh(kAnswerPatience);
  return Status::error(
      Code::Timeout,
      text(currentCall(), " timed out after ", timeoutMs_, " ms: ", whoIsMissing(waitingFor),
           "; fix: find out why it is late, or raise WEFT_TIMEOUT_MS"));
}

void Watch::warnIfLong(std::uint32_t waitingFor) {
  if (Clock::now() - since_ < warnAfter_) return;
  logWarn(currentCall(), ": waiting for ", warnAfter_.count(), " s; ", whoIsMissing(waitingFor));
  warnAfter_ *= 2;
}

Status Watch::trouble(std::uint32_t waitingFor, const Needs& needs) {
  const Clock::time_point now = Clock::now();
  if (!waiting_) {
    waiting_ = true;
    since_ = now;
    nextLook_ = now;
    nextAsk_ = now + kAskFirst;
    askEvery_ = kAskFirst;
    warnAfter_ = std::chrono::seconds(10);
  }
  if (published()) return declare(verdict());
  if (far_) askFarRanks(now);
  WEFT_TRY(compareCalls());
  if (now >= nextLook_) {
    nextLook_ = now + kLookEvery;
    WEFT_TRY(lookForDead(true, needs));
    WEFT_TRY(lookForLeavers(needs));
  }
  if (now - since_ >= milliseconds(timeoutMs_)) return declare(late(waitingFor));
  warnIfLong(waitingFor);
  return {};
}

void Watch::askFarRanks(Clock::time_point now) {
  if (now < nextAsk_) return;
  askEvery_ = std::min(2 * askEvery_, kAskAtMost);
  nextAsk_ = now + askEvery_;
  far_->refresh(milliseconds(0));
  warnOfSilence();
}

void Watch::warnOfSilence() {
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    const bool silent = far_->silence(r) >= kSilence;
    if (silent && !silent_[r]) logWarn(currentCall(), ": ", silenceOf(r));
    silent_[r] = silent;
  }
}

// Does the end of `peer` keep this rank from finishing? Not if the peer has done its part of this
// call, whose bytes lie here already, or has destroyed its end.
bool Watch::isMissed(std::uint32_t peer, bool inCall, const Needs& needs) const {
  const ControlPage* page = transport_.control(peer);
  if (page == nullptr) return true;
  if (!inCall) return page->left.load(std::memory_order_acquire) == 0;
  if (plan_ == nullptr) return !needs || needs(peer);
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
  if (dead.ok() && far_) dead = farDeath(matters);
  if (dead.ok()) return {};
  if (inCall) WEFT_TRY(lookForLeavers(needs));  // destroyed its end before it ended: says more
  return declare(
      Status::error(dead.code(), text(dead.text(), inCall ? ", during " + currentCall() : "",
                                      "; restart the job from its last checkpoint")));
}

Status Watch::farDeath(const Needs& matters) const {
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    const Status ended = far_->ended(r);
    if (!ended.ok() && matters(r)) return ended;
  }
  return {};
}

Status Watch::lost(const std::string& symptom) {
  const Clock::time_point until = Clock::now() + kDeathPatience;
  do {
    if (published()) return declare(verdict());
    WEFT_TRY(lookForDead(true));
    std::this_thread::sleep_for(milliseconds(1));
  } while (Clock::now() < until);
  return declare(Status::error(far_ ? Code::LinkLost : Code::RemoteError, symptom));
}

Status Watch::lookAround() {
  if (published()) return declare(verdict());
  WEFT_TRY(lookForDead(false));
  return lookForDead(false);
}

// Has a rank that has destroyed its end not made this call, or not its part of a transfer?
bool Watch::isAwaited(std::uint32_t leaver, const Needs& needs) {
  if (plan_ != nullptr)
    return transport_.control(leaver)->callSeq.load(std::memory_order_acquire) < seq_;
  return needs && needs(leaver) && endSeenBefore(leaver);
}

Status Watch::lookForLeavers(const Needs& needs) {
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    const ControlPage* page = transport_.control(r);
    if (page == nullptr || page->left.load(std::memory_order_acquire) == 0) continue;
    if (!isAwaited(r, needs)) continue;
    return declare(Status::error(
        Code::RemoteError,
        text(names_[r], " has destroyed its end of the communicator; ", currentCall(),
             " waits for it; fix: ",
             plan_ != nullptr ? "make the same calls on every rank"
                              : "match each send with a receive before destroying an end")));
  }
  return {};
}

void Watch::leaveForGood() {
  mine_.left.store(1, std::memory_order_release);
  if (far_) far_->leave();
  for (std::uint32_t r = 0; r < names_.size(); ++r) transport_.wake(r);
}

}  // namespace weft
