// SPDX-License-Identifier: Apache-2.0
#include "watch/watch.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/rank_list.h"
#include "base/text.h"
#include "plan/call.h"
#include "watch/crowd.h"

namespace weft::watch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{5};        // for dead peers
constexpr std::size_t kMostNamed = 4;        // late ranks told with their last calls
constexpr milliseconds kWordsPatience{250};  // for the next call of ranks that come a little later
constexpr milliseconds kWordsAtMost{2000};   // for all of them: many may share few cores
constexpr milliseconds kFirstErrorPatience{50};  // for the text of an error that is being written
constexpr milliseconds kLeavePatience{500};      // for ranks in the midst of a large copy
constexpr std::chrono::microseconds kLeaveLook{50};
constexpr milliseconds kDeathPatience{100};  // from a lost connection to the news of a death
// Remote ranks are asked first after a wait that is longer than most, then more and more seldom.
constexpr milliseconds kAskFirst{20};
constexpr milliseconds kAskAtMost{500};
constexpr milliseconds kAskAgain{5};                           // for words that have not come yet
constexpr milliseconds kAnswerPatience{30};                    // for the last look before an error
constexpr std::uint64_t kCompareEvery = transport::kRing / 4;  // calls, if rooted

constexpr const char* kUnknownCall = "another call";

std::string wordsOf(const transport::CallRecord& record) {
  return record.what.load(std::memory_order_acquire) == kUnknownWords ? kUnknownCall
                                                                      : plan::describe(record);
}

// The peer's record of call `seq`, if it has made that call. `words` may be null.
bool readCall(const transport::ControlPage& page, std::uint64_t seq, std::uint64_t* fingerprint,
              std::string* words) {
  const transport::CallRecord& record = page.calls[seq % transport::kCallRecords];
  if (record.seq.load(std::memory_order_acquire) != seq) return false;
  *fingerprint = record.fingerprint.load(std::memory_order_acquire);
  if (words) *words = wordsOf(record);
  return record.seq.load(std::memory_order_relaxed) == seq;
}

std::size_t sizeOf(const std::map<std::string, std::vector<std::uint32_t>>& callers,
                   const std::string& words) {
  const auto found = callers.find(words);
  return found == callers.end() ? 0 : found->second.size();
}

// "ranks 0-1 called all_reduce(count=1, float, sum); rank 2 did not call yet"
std::string callsOf(const std::map<std::string, std::vector<std::uint32_t>>& callers) {
  return joined(callers, "; ", [](const auto& caller) {
    const auto& [words, ranks] = caller;
    return text(rankList(ranks), words.empty() ? " did not call yet" : " called ", words);
  });
}

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

void Watch::enter(const Announced& call, int timeoutMs, const char* label) {
  inPairs_ = false;
  ahead_ = call.runsAhead;
  tag_ = Hash().add(tag_ + call.fingerprint).value();
  ++seq_;
  transport::CallRecord& record = mine_.calls[seq_ % transport::kCallRecords];
  // Release each: whoever reads a field of this call no longer finds the number of an older one.
  record.seq.store(0, std::memory_order_relaxed);
  record.fingerprint.store(tag_, std::memory_order_release);
  record.count.store(call.count, std::memory_order_release);
  record.what.store(call.what, std::memory_order_release);
  record.seq.store(seq_, std::memory_order_release);
  // In this order: whoever is killed in between must not look like one that has done its part.
  mine_.inCall.store(1, std::memory_order_relaxed);
  mine_.callSeq.store(seq_, std::memory_order_release);
  beginWait(timeoutMs, label);
  if (ahead_ && seq_ % kCompareEvery == 0) (void)compareCalls(seq_ - kCompareEvery);
}

void Watch::enterPairs(int timeoutMs, const char* label) {
  inPairs_ = true;
  mine_.inPairs.store(1, std::memory_order_seq_cst);
  beginWait(timeoutMs, label);
}

void Watch::beginWait(int timeoutMs, const char* label) {
  timeoutMs_ = timeoutMs;
  label_ = label;
  waiting_ = false;
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

// The rank that alone made another call than most ranks did. Those of which there is no word may
// yet make either; that most are most they cannot change. Of two nobody knows.
PeerName Watch::oddOneOut(const Callers& callers) const {
  if (callers.size() - callers.count("") != 2) return {};
  const std::vector<std::uint32_t>* most = nullptr;
  const std::vector<std::uint32_t>* odd = nullptr;
  for (const auto& [words, ranks] : callers) {
    if (words.empty()) continue;
    if (2 * ranks.size() > names_.size()) most = &ranks;
    if (ranks.size() == 1) odd = &ranks;
  }
  return most != nullptr && odd != nullptr && most != odd ? names_[(*odd)[0]] : PeerName();
}

// Have any two ranks, of those whose records are still there, made other calls up to this one?
bool Watch::differ(std::uint64_t seq) const {
  std::uint64_t tag = 0, before = 0;
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    const transport::ControlPage* page = transport_.control(r);
    if (!page || !readCall(*page, seq, &tag, nullptr)) continue;
    if (before != 0 && tag != before) return true;
    before = tag;
  }
  return false;
}

// The words of call `seq` by its fingerprint: one rank's are those of all that have made the same calls.
std::map<std::uint64_t, std::string> Watch::wordsHeard(std::uint64_t seq) const {
  std::map<std::uint64_t, std::string> heard;
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    std::uint64_t fingerprint = 0;
    std::string words;
    const transport::ControlPage* page = transport_.control(r);
    if (page && readCall(*page, seq, &fingerprint, &words) && words != kUnknownCall)
      heard.emplace(fingerprint, std::move(words));
  }
  return heard;
}

// What each rank called, as far as it is known now; "" for those of which it is not yet.
Watch::Callers Watch::heardOf(std::uint64_t seq) const {
  const std::map<std::uint64_t, std::string> heard = wordsHeard(seq);
  Callers callers;
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    std::uint64_t fingerprint = 0;
    std::string words = "another algorithm";
    const transport::ControlPage* page = transport_.control(r);
    if (page && !readCall(*page, seq, &fingerprint, &words)) {
      if (page->callSeq.load(std::memory_order_acquire) > seq) continue;  // too long ago
      words.clear();
    }
    const auto same = heard.find(fingerprint);
    callers[words == kUnknownCall && same != heard.end() ? same->second : words].push_back(r);
  }
  return callers;
}

// The others enter within moments: waits for their words, as long as more of them come, but no
// longer than until somebody else has told the error. *seq is the first call on which not all agree,
// which may turn out to be an earlier one.
Watch::Callers Watch::callersOf(std::uint64_t* seq) {
  const double crowded = crowd();
  const auto patience = std::chrono::duration_cast<milliseconds>(crowded * kWordsPatience);
  const auto most = std::chrono::duration_cast<milliseconds>(crowded * kWordsAtMost);
  const Clock::time_point end =
      Clock::now() + std::min(most, std::max(kWordsAtMost, milliseconds(timeoutMs_)));
  Clock::time_point until = Clock::now() + patience;
  std::size_t silent = names_.size();
  for (auto pause = kLeaveLook;; pause = std::min(2 * pause, 20 * kLeaveLook)) {
    if (remote_) remote_->refresh(kAskAgain);
    std::this_thread::sleep_for(pause);  // they may be waiting for this core
    if (const std::uint64_t parting = remote_ ? remote_->parting() : 0; parting != 0)
      *seq = std::min(*seq, parting);
    Callers callers = heardOf(*seq);
    const std::size_t unknown = sizeOf(callers, "") + sizeOf(callers, kUnknownCall);
    if (unknown == 0 || published()) return callers;
    if (unknown < silent) until = Clock::now() + patience;
    silent = unknown;
    if (Clock::now() > std::min(until, end)) return callers;
  }
}

// The first call on which not all agree, as far as is known.
std::uint64_t Watch::firstDifference() const {
  std::uint64_t seq = seq_ - std::min<std::uint64_t>(seq_ - 1, transport::kCallRecords - 1);
  while (seq < seq_ && !differ(seq)) ++seq;
  return seq;
}

Status Watch::disagreement(std::uint32_t peer) {
  std::uint64_t seq = firstDifference();
  const Callers callers = callersOf(&seq);
  ErrorData data{
      .code = Code::Mismatch,
      .what = text("mismatched collective #", seq, " on communicator ", commName_, ": {call}"),
      .fix = "make the same call on every rank"};
  data.who = oddOneOut(callers);
  data.call = callsOf(callers);
  if (const auto none = callers.find(""); none != callers.end()) data.missing = none->second;
  if (callers.size() == 1)
    data.what += text(
        "; they differ in counts of single ranks, algorithm or reproducibility (seen from rank ",
        peer, ")");
  return declare(Status::error(std::move(data)));
}

Status Watch::compareCalls(std::uint64_t seq) {
  const std::uint64_t parting = remote_ ? remote_->parting() : 0;
  if (parting != 0 && parting < seq) WEFT_TRY(compareOne(parting));
  return compareOne(seq);
}

Status Watch::compareOne(std::uint64_t seq) {
  std::uint64_t mine = 0, theirs = 0;
  if (!readCall(mine_, seq, &mine, nullptr)) return {};
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    const transport::ControlPage* page = transport_.control(r);
    if (page && readCall(*page, seq, &theirs, nullptr) && theirs != mine) return disagreement(r);
  }
  return {};
}

// What ranks have called that are ahead of this one may come a little later than how far they are.
void Watch::awaitAgreement() {
  const Clock::time_point until = Clock::now() + kWordsPatience;
  while (remote_ && !remote_->knowsAgreement() && !isBroken() && Clock::now() < until) {
    std::this_thread::sleep_for(kAskAgain);
    remote_->refresh(kAnswerPatience);
  }
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

// Whom a collective waits for while data moves changes all the time and says nothing.
void Watch::warnIfLong(std::uint32_t waitingFor) {
  if (Clock::now() - since_ < warnAfter_) return;
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
