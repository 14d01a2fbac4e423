// SPDX-License-Identifier: Apache-2.0
// Whether all ranks have made the same calls, and else who has made which.
#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rank_list.h"
#include "base/text.h"
#include "watch/call_records.h"
#include "watch/crowd.h"
#include "watch/patience.h"
#include "watch/watch.h"

namespace weft::watch {
namespace {

using std::chrono::milliseconds;

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

}  // namespace weft::watch
