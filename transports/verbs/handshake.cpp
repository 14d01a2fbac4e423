// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/handshake.h"

#include <algorithm>

#include "base/mark.h"
#include "base/text.h"

namespace weft::verbs {
namespace {

// A peer that is in no call may answer after its progress thread's longest interval.
constexpr std::chrono::milliseconds kFirstPause{16}, kLongestPause{512};

}  // namespace

void Handshakes::want(std::uint32_t edge, Time now) {
  End& end = all_[edge];
  if (end.wanted || end.ready || end.ended) return;
  open(edge, end);
  if (end.ended) return;
  end.wanted = true;
  end.since = end.next = now;
  end.pause = kFirstPause;
  waiting_.push_back(edge);
  repeat(edge, end, now);
}

void Handshakes::open(std::uint32_t edge, End& end) {
  if (end.mine.known()) return;
  if (const Status made = ends_.make(edge, &end.mine); !made.ok()) ends_.fail(edge, made.message());
}

void Handshakes::join(std::uint32_t edge, End& end, const Endpoint& theirs) {
  open(edge, end);
  if (end.ended || end.theirs.known()) return;
  if (const Status joined = ends_.join(edge, theirs); !joined.ok())
    return ends_.fail(edge, joined.message());
  end.theirs = theirs;
}

void Handshakes::settle(std::uint32_t edge, End& end) {
  if (end.ready || end.ended) return;
  end.ready = true;
  ends_.ready(edge);
}

void Handshakes::offer(std::uint32_t edge, const End& end) {
  ends_.say(edge, {Word::Offer, end.mine, end.theirs, end.ready});
}

void Handshakes::repeat(std::uint32_t edge, End& end, Time now) {
  offer(edge, end);
  end.next = now + end.pause;
  end.pause = std::min(2 * end.pause, kLongestPause);
}

void Handshakes::take(std::uint32_t edge, const Word& word) {
  End& end = all_[edge];
  if (word.kind == Word::Refusal) {
    if (!end.ended && word.theirs == end.mine)
      ends_.fail(edge, "its end refuses to be connected, and says why");
    return;
  }
  if (!end.ended) join(edge, end, word.mine);
  if (end.ended) {
    if (word.settled == 0) ends_.say(edge, {Word::Refusal, end.mine, word.mine});
    return;
  }
  if (end.theirs != word.mine && WEFT_MARK("verbs: an offer of another queue pair")) return;
  if (word.theirs == end.mine) settle(edge, end);
  if (word.settled == 0) offer(edge, end);
}

void Handshakes::tick(Time now) {
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const std::uint32_t edge = waiting_[i];
    End& end = all_[edge];
    if (end.ready || end.ended || now < end.next) continue;
    if (now - end.since < patience_)
      repeat(edge, end, now);
    else
      ends_.fail(edge, text("no answer to its connection within ", patience_.count(), " ms"));
  }
  std::erase_if(waiting_, [&](std::uint32_t edge) { return all_[edge].ready || all_[edge].ended; });
}

}  // namespace weft::verbs
