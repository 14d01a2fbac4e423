// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/wire_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr int kByeMs = 300;

// A forked child has no such thread, and may not touch what it was waiting on.
void forgetInChild(std::unique_ptr<Caretaker> caretaker) {
  static auto& forgotten = *new std::vector<std::unique_ptr<Caretaker>>();
  forgotten.push_back(std::move(caretaker));
}

}  // namespace

WireTransport::WireTransport(Parts parts)
    : parts_(std::move(parts)),
      mailbox_({parts_.mailboxMemory->base(), Mailbox::bytes(parts_.layout)}, parts_.layout),
      outbox_(*parts_.wire, mailbox_, parts_.layout.ranks),
      inbox_(mailbox_, own().cells()),
      down_(parts_.layout.ranks),
      left_(parts_.layout.ranks) {
  answers_.reserve(2 * Mailbox::kSlots);
  if (parts_.wire->caps().manual)
    caretaker_ = std::make_unique<Caretaker>([this] { return progress() != 0; });
}

WireTransport::~WireTransport() {
  if (!parts_.mailboxMemory->present()) {
    forgetInChild(std::move(caretaker_));
    return;
  }
  if (caretaker_) caretaker_->stop();
  sayBye();
  const Deadline deadline = Deadline::in(kByeMs);
  std::array<Event, 16> events;
  while (!(allLeft() && outbox_.outstanding() == 0) && !deadline.expired()) {
    poll(events.data(), static_cast<int>(events.size()));
    std::this_thread::yield();
  }
}

void WireTransport::sayBye() {
  const Deadline deadline = Deadline::in(kByeMs);
  std::array<Event, 16> events;
  for (std::uint32_t r = 0; r < parts_.mirrors.size(); ++r) {
    if (parts_.mirrors[r] == nullptr) continue;
    while (down_[r].empty() && !outbox_.tell(r, Notice::bye()) && !deadline.expired())
      poll(events.data(), static_cast<int>(events.size()));
  }
}

bool WireTransport::allLeft() const {
  for (std::uint32_t r = 0; r < parts_.mirrors.size(); ++r)
    if (parts_.mirrors[r] != nullptr && down_[r].empty() && !left_[r]) return false;
  return true;
}

ControlPage* WireTransport::control(std::uint32_t peer) const {
  return peer == parts_.rank ? &own().control() : parts_.mirrors[peer].get();
}

bool WireTransport::fetch(std::uint32_t peer, std::uint64_t, void*, std::size_t) {
  lastError_ = text("the memory of rank ", peer, " cannot be read from here");
  return false;
}

bool WireTransport::deposit(std::uint32_t peer, std::uint64_t, const void*, std::size_t) {
  lastError_ = text("the memory of rank ", peer, " cannot be written from here");
  return false;
}

// To oneself.
PutResult WireTransport::putHere(const Put& put) {
  Cell& cell = *reinterpret_cast<Cell*>(parts_.segment + put.cell);
  std::byte* const to = put.target == kInCell ? cell.inlined : parts_.segment + put.target;
  if (put.bytes != 0) std::memcpy(to, put.src, put.bytes);
  cell.stamp = put.stamp;
  cell.word.store(put.word, std::memory_order_release);
  return PutResult::Done;
}

PutResult WireTransport::put(const Put& put) {
  if (put.peer == parts_.rank) return putHere(put);
  if (left_[put.peer]) [[unlikely]]
    return PutResult::Done;
  if (!down_[put.peer].empty()) [[unlikely]] {
    lastError_ = down_[put.peer];
    return PutResult::Failed;
  }
  if (put.direct || put.bytes > caps().maxPut) {
    lastError_ =
        text("put of ", put.bytes, " bytes to rank ", put.peer, ": this transport carries ",
             caps().maxPut, " at once, to landing memory only");
    return PutResult::Failed;
  }
  const PutResult result = outbox_.put(put, cellOf(put));
  if (result == PutResult::Failed) lastError_ = parts_.wire->lastError();
  return result;
}

bool WireTransport::tell(std::uint32_t peer, std::uint64_t completed) {
  return left_[peer] || !down_[peer].empty() || outbox_.tell(peer, Notice::completed(completed));
}

int WireTransport::progress() {
  outbox_.retry();
  std::array<WireEvent, 16> events;
  const int count = parts_.wire->poll(events.data(), static_cast<int>(events.size()));
  for (int i = 0; i < count; ++i) take(events[static_cast<std::size_t>(i)]);
  return count;
}

int WireTransport::poll(Event* out, int max) {
  progress();
  if (answers_.empty()) return 0;
  const int told = std::min(max, static_cast<int>(answers_.size()));
  std::copy_n(answers_.begin(), told, out);
  answers_.erase(answers_.begin(), answers_.begin() + told);
  return told;
}

void WireTransport::take(const WireEvent& event) {
  switch (event.kind) {
    case WireEvent::Sent: {
      Event done;
      if (outbox_.sent(event.cookie, &done)) answers_.push_back(done);
      return;
    }
    case WireEvent::Noticed:
      return hear(event.peer, Notice::of(event.notice));
    default:
      return breakLink(event.peer, parts_.wire->lastError());
  }
}

void WireTransport::hear(std::uint32_t peer, Notice notice) {
  if (!down_[peer].empty()) return;
  if (notice.count == 0) {
    const std::uint64_t known = parts_.mirrors[peer]->completed.load(std::memory_order_relaxed);
    return learn(peer, notice.epochNear(known));
  }
  if (notice == Notice::bye()) {
    left_[peer] = true;
    return;
  }
  if (!inbox_.makesSense(notice))
    return breakLink(peer, text("rank ", peer, " sent a notice of cell ", notice.value, " of ",
                                mailbox_.cells(), "; fix: the same libweft on all ranks"));
  const Cell* const raised = inbox_.take(notice);
  if (raised == nullptr || raised >= own().pairCells()) return;
  const std::uint64_t word = raised->word.load(std::memory_order_relaxed);
  if (completedOf(word) <= epochOf(word)) learn(peer, completedOf(word));
}

// Told in no order: the latest counts. Whoever may put is to know it before it comes to wait for
// the arrival that brought it, else two ranks could each wait for the other.
void WireTransport::learn(std::uint32_t peer, std::uint64_t completed) {
  std::atomic<std::uint64_t>& mirror = parts_.mirrors[peer]->completed;
  if (completed > mirror.load(std::memory_order_relaxed))
    mirror.store(completed, std::memory_order_release);
}

// To who has said good-bye it is no loss: it has no use for anything more.
void WireTransport::breakLink(std::uint32_t peer, std::string why) {
  if (!down_[peer].empty()) return;
  down_[peer] = lastError_ = std::move(why);
  Event answer;
  while (outbox_.forget(peer, &answer)) {
    if (left_[peer]) answer.kind = Event::PutDone;
    answers_.push_back(answer);
  }
  if (!left_[peer]) answers_.push_back({Event::LinkDown, peer, 0});
}

void WireTransport::sever(std::uint32_t peer) {
  if (peer == parts_.rank) return;
  parts_.wire->sever(peer);
  breakLink(peer, text("put to rank ", peer, ": the link to it was cut"));
}

}  // namespace weft
