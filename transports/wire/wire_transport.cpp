// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/wire_transport.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "transports/doorbell.h"

namespace weft::wire {
namespace {

constexpr int kByeMs = 300;
constexpr std::chrono::milliseconds kRetry{2};  // what the wire has refused
constexpr std::chrono::milliseconds kKeepAlive{10000};

// A forked child has no such thread, and closing the wire would reach the parent's connections.
void forget(std::unique_ptr<ProgressThread> progressThread, std::unique_ptr<Wire> wire) {
  static auto& threads = *new std::vector<std::unique_ptr<ProgressThread>>();
  static auto& wires = *new std::vector<std::unique_ptr<Wire>>();
  threads.push_back(std::move(progressThread));
  wires.push_back(std::move(wire));
}

}  // namespace

WireTransport::WireTransport(Parts parts)
    : parts_(std::move(parts)),
      bounce_({parts_.bounceMemory->base(), BounceBuffer::bytes(parts_.layout)}, parts_.layout),
      outbox_(*parts_.wire, bounce_, parts_.layout),
      inbox_(bounce_, own().arrivals(),
             parts_.bookMemory->base() + parts_.layout.ranks * kMirrorBytes),
      down_(parts_.layout.ranks),
      left_(parts_.layout.ranks),
      manual_(parts_.wire->caps().manual) {
  if (parts_.control == nullptr) parts_.control = reinterpret_cast<ControlPage*>(parts_.window);
  answers_.reserve(2 * BounceBuffer::kSlots);
  for (std::uint32_t r = 0; r < parts_.peers.size(); ++r)
    if (parts_.peers[r]) mirror(r).rank = static_cast<std::int32_t>(r);
  const bool sleeps = parts_.wire->caps().sleeps;
  ProgressThread::Arm armed;
  if (sleeps)
    armed = [this](std::vector<pollfd>* descriptors, bool waits) {
      return arm(descriptors, waits);
    };
  if (manual_ || sleeps)
    progressThread_ =
        std::make_unique<ProgressThread>([this] { return progressForSleeper(); }, armed);
}

WireTransport::~WireTransport() {
  if (!parts_.bounceMemory->present()) {
    forget(std::move(progressThread_), std::move(parts_.wire));
    return;
  }
  if (progressThread_) progressThread_->stop();
  const auto mayHear = [&](std::uint32_t r) {
    return parts_.peers[r] && parts_.wire->isConnected(r) && down_[r].ok();
  };
  const Deadline bye = Deadline::in(kByeMs);
  for (std::uint32_t r = 0; r < parts_.peers.size(); ++r)
    pollUntil(bye, [&] { return !mayHear(r) || outbox_.tell(r, ImmediateData::bye()); });
  pollUntil(Deadline::in(kByeMs), [&] {
    for (std::uint32_t r = 0; r < parts_.peers.size(); ++r)
      if (mayHear(r) && !left_[r]) return false;
    return outbox_.outstanding() == 0;
  });
}

template <class Done>
void WireTransport::pollUntil(Deadline deadline, const Done& done) {
  std::array<Event, 16> events;
  while (!done() && !deadline.expired()) {
    poll(events.data(), static_cast<int>(events.size()));
    std::this_thread::yield();
  }
}

ControlPage* WireTransport::control(std::uint32_t peer) const {
  return peer == parts_.rank ? &own().control() : parts_.peers[peer] ? &mirror(peer) : nullptr;
}

// To oneself.
PutResult WireTransport::putHere(const Put& put) {
  ArrivalSlot& arrival = *reinterpret_cast<ArrivalSlot*>(parts_.window + put.arrival);
  std::byte* const to = put.target == kInlined ? arrival.inlined : parts_.window + put.target;
  if (put.bytes != 0) std::memcpy(to, put.src, put.bytes);
  arrival.tag = put.tag;
  arrival.flag.store(put.flag, std::memory_order_release);
  return PutResult::Done;
}

PutResult WireTransport::put(const Put& put) {
  if (put.peer == parts_.rank) return putHere(put);
  if (left_[put.peer]) [[unlikely]]
    return PutResult::Done;
  if (!down_[put.peer].ok()) [[unlikely]] {
    lastError_ = down_[put.peer];
    return PutResult::Failed;
  }
  const bool elsewhere = put.bytes != 0 && put.target < parts_.layout.arena();
  if (put.direct || elsewhere || put.bytes > caps().maxPut) {
    lastError_ = Status::error(Code::RemoteError, "put of ", put.bytes, " bytes to rank ", put.peer,
                               ": this transport carries ", caps().maxPut,
                               " at once, to staging memory only");
    return PutResult::Failed;
  }
  const PutResult result = outbox_.put(put, arrivalOf(put));
  if (result == PutResult::Failed) lastError_ = parts_.wire->lastError();
  return result;
}

bool WireTransport::tell(std::uint32_t peer, std::uint64_t completed) {
  return left_[peer] || !down_[peer].ok() ||
         outbox_.tell(peer, ImmediateData::completed(completed));
}

int WireTransport::progress() {
  outbox_.retry();
  std::array<WireEvent, 16> events;
  const int count = parts_.wire->poll(events.data(), static_cast<int>(events.size()));
  for (int i = 0; i < count; ++i) take(events[static_cast<std::size_t>(i)]);
  return count;
}

// Of the thread, while the application may sleep.
bool WireTransport::progressForSleeper() {
  if (progress() == 0) return false;
  news_.store(true, std::memory_order_release);
  doorbellRing(own().control());
  return true;
}

ProgressThread::Milliseconds WireTransport::arm(std::vector<pollfd>* descriptors, bool waits) {
  if (!parts_.wire->arm(descriptors, waits)) return {};
  return outbox_.isRefused() || parts_.wire->isUnsettled() ? kRetry : kKeepAlive;
}

bool WireTransport::handOver() {
  news_.store(!answers_.empty(), std::memory_order_relaxed);
  return progressThread_ && progressThread_->handOver();
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
    case WireEvent::RemoteCompletion:
      return hear(event.peer, ImmediateData::of(event.immediate));
    default:
      return breakLink(event.peer, parts_.wire->lastError());
  }
}

void WireTransport::hear(std::uint32_t peer, ImmediateData immediate) {
  if (!down_[peer].ok()) return;
  if (immediate.count == 0) {
    // No rank is far from another, as they run the same invocations: so what is complete here tells
    // which of them is meant, however long the peer has told nothing.
    const std::uint64_t here = own().control().completed.load(std::memory_order_relaxed);
    return learn(peer, immediate.epochNear(here));
  }
  if (immediate == ImmediateData::bye()) {
    left_[peer] = true;
    return;
  }
  if (!inbox_.makesSense(immediate, peer, parts_.layout))
    return breakLink(
        peer, Status::error(Code::RemoteError, "rank ", peer,
                            " sent immediate data for arrival slot ", immediate.value, " of ",
                            bounce_.arrivals(), "; fix: the same libweft on all ranks"));
  const ArrivalSlot* const raised = inbox_.take(immediate);
  if (raised == nullptr || raised >= own().pairArrivals()) return;
  const std::uint64_t flag = raised->flag.load(std::memory_order_relaxed);
  if (completedOf(flag) <= epochOf(flag)) learn(peer, completedOf(flag));
}

// These come in no order: the latest counts. A rank must learn it before it waits for the arrival
// that brought it, else two ranks could wait for each other.
void WireTransport::learn(std::uint32_t peer, std::uint64_t completed) {
  std::atomic<std::uint64_t>& known = mirror(peer).completed;
  if (completed > known.load(std::memory_order_relaxed))
    known.store(completed, std::memory_order_release);
}

// A peer that has said good-bye needs nothing more: no loss.
void WireTransport::breakLink(std::uint32_t peer, const Status& why) {
  if (!down_[peer].ok()) return;
  down_[peer] = lastError_ = within("", {static_cast<int>(peer), ""}, why);
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
  breakLink(peer,
            Status::error(Code::RemoteError, "put to rank ", peer, ": the link to it was cut"));
}

}  // namespace weft::wire
