// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/shared_wire.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace weft::wire {
namespace {

constexpr std::chrono::milliseconds kRetry{2};  // what the wire has refused
constexpr std::chrono::milliseconds kKeepAlive{10000};

constexpr std::uint32_t kMostPlaces = 1u << 16;  // that a cookie tells apart
constexpr std::uint32_t kRuns = 1u << (ImmediateData::kValueBits - ImmediateValues::kFewestBits);
constexpr std::uint32_t kNobody = ~0u;
constexpr std::uint32_t kIdle = 64;  // polls without an event, after which good-byes are said again

std::uint32_t runsOf(const ImmediateValues& values) {
  return values.count() >> ImmediateValues::kFewestBits;
}

}  // namespace

SharedWire::SharedWire(std::unique_ptr<Wire> wire)
    : wire_(std::move(wire)), manual_(wire_->caps().manual) {
  const bool sleeps = wire_->caps().sleeps;
  ProgressThread::Arm armed;
  if (sleeps)
    armed = [this](std::vector<pollfd>* descriptors, bool waits) {
      return arm(descriptors, waits);
    };
  const auto progressed = [this] {
    const auto held = lock();
    return progress(nullptr) != 0;
  };
  if (manual_ || sleeps) progressThread_ = std::make_unique<ProgressThread>(progressed, armed);
}

// The wire first: until then it uses the memory of the ends.
SharedWire::~SharedWire() {
  if (progressThread_) progressThread_->stop();
  wire_.reset();
}

void SharedWire::arrive() {
  const std::lock_guard held(presence_);
  if (++owners_ == 1 && progressThread_) progressThread_->acquireProgress();
}

void SharedWire::acquireProgress(Presence* who) {
  const std::lock_guard held(presence_);
  if (who->owns) return;
  who->owns = true;
  if (std::exchange(who->sleeps, false)) --sleepers_;
  if (++owners_ == 1 && progressThread_) progressThread_->acquireProgress();
}

void SharedWire::releaseProgress(Presence* who) {
  if (!manual_) return;
  const std::lock_guard held(presence_);
  who->owns = false;
  --owners_;
  yieldProgress();
}

// The thread's, unless another communicator makes it.
void SharedWire::yieldProgress() {
  if (owners_ != 0 || !progressThread_) return;
  if (sleepers_ != 0 && progressThread_->handOver()) return;
  if (manual_) progressThread_->releaseProgress();
}

bool SharedWire::handOver(Presence* who) {
  if (!progressThread_) return false;
  const std::lock_guard held(presence_);
  if (!(owners_ > 1 ? progressThread_->servesSleepers() : progressThread_->handOver()))
    return false;
  who->owns = false;
  who->sleeps = true;
  --owners_;
  ++sleepers_;
  return true;
}

void SharedWire::depart(Presence* who) {
  const std::lock_guard held(presence_);
  if (who->owns) --owners_;
  yieldProgress();
}

ProgressThread::Milliseconds SharedWire::arm(std::vector<pollfd>* descriptors, bool waits) {
  const auto held = lock();
  if (!wire_->arm(descriptors, waits)) return {};
  return !refused_.empty() || wire_->isUnsettled() ? kRetry : kKeepAlive;
}

// Next fit, on a multiple of their number.
bool SharedWire::takeRuns(std::uint32_t runs, std::uint32_t number, std::uint32_t* first) {
  const auto from = static_cast<std::uint32_t>(roundUp(nextRun_, runs));
  for (std::uint32_t i = 0; i < kRuns; i += runs) {
    const std::uint32_t at = (from + i) % kRuns;
    const auto begin = runs_.begin() + at;
    if (std::any_of(begin, begin + runs, [](std::uint32_t whose) { return whose != kNobody; }))
      continue;
    std::fill_n(begin, runs, number);
    *first = at;
    nextRun_ = (at + runs) % kRuns;
    return true;
  }
  return false;
}

bool SharedWire::reserve(const ImmediateValues& values, std::uint32_t* number,
                         std::uint32_t* firstValue) {
  if (runs_.empty()) {
    runs_.assign(kRuns, kNobody);
    std::fill_n(runs_.begin(), runsOf(places_[0].end->wire().values()), 0);
  }
  const auto place = std::ranges::find(places_, false, &Place::taken);
  *number = static_cast<std::uint32_t>(place - places_.begin());
  std::uint32_t run = 0;
  if (*number == kMostPlaces - 1 || !takeRuns(runsOf(values), *number, &run)) return false;
  *firstValue = run << ImmediateValues::kFewestBits;
  if (place == places_.end()) places_.emplace_back();
  places_[*number].taken = true;
  return true;
}

void SharedWire::release(std::uint32_t number) {
  std::ranges::replace(runs_, number, kNobody);
  wire_->closeArea(number);
  places_[number] = {};
}

void SharedWire::add(std::shared_ptr<WireEnd> end) {
  const std::uint32_t number = end->wire().number();
  if (number >= places_.size()) places_.resize(number + 1);
  places_[number] = {.taken = true, .end = std::move(end)};
  ++communicators_;
}

void SharedWire::retryLater(WireEnd* end) {
  if (end->isRefused() && std::ranges::find(refused_, end) == refused_.end())
    refused_.push_back(end);
}

void SharedWire::retry() {
  for (WireEnd* const end : refused_) end->retry();
  std::erase_if(refused_, [](const WireEnd* end) { return !end->isRefused(); });
}

int SharedWire::progress(const WireEnd* asker) {
  if (!refused_.empty()) retry();
  std::array<WireEvent, 16> events;
  const int count = wire_->poll(events.data(), static_cast<int>(events.size()));
  for (int i = 0; i < count; ++i) dispatch(events[static_cast<std::size_t>(i)], asker);
  if (ended_ != 0 && (count != 0 || ++idlePolls_ % kIdle == 0)) [[unlikely]]
    closeEnded();
  return count;
}

void SharedWire::dispatch(const WireEvent& event, const WireEnd* asker) {
  switch (event.kind) {
    case WireEvent::Sent: {
      WireEnd* const end = endOf(AreaWire::numberOf(event.cookie));
      if (end == nullptr) return;
      end->sent(event.cookie);
      if (end != asker) end->ring();
      return;
    }
    case WireEvent::RemoteCompletion:
      return hear(event, asker);
    default:
      for (const Place& place : places_)
        if (place.end) linkDown(*place.end, event.peer, wire_->lastError());
  }
}

// What comes for none has come late.
void SharedWire::hear(const WireEvent& event, const WireEnd* asker) {
  ImmediateData immediate = ImmediateData::of(event.immediate);
  WireEnd* const end =
      endOf(runs_.empty() ? 0 : runs_[immediate.value >> ImmediateValues::kFewestBits]);
  if (end == nullptr) return;
  const std::uint32_t rank = end->wire().rank(event.peer);
  if (rank == AreaWire::kNobody) return;
  immediate.value -= end->wire().first();
  end->hear(rank, immediate);
  if (end != asker) end->ring();
}

void SharedWire::linkDown(WireEnd& end, std::uint32_t peer, const Status& why) {
  const std::uint32_t rank = end.wire().rank(peer);
  if (rank == AreaWire::kNobody) return;
  end.linkDown(rank, why);
  end.ring();
}

void SharedWire::sever(std::uint32_t peer, const WireEnd* by) {
  wire_->sever(peer);
  for (const Place& place : places_)
    if (place.end && place.end.get() != by)
      linkDown(*place.end, peer,
               Status::error(Code::RemoteError,
                             "the link was cut at this end, as a call of another communicator that "
                             "shares it has failed in the middle of a put"));
}

bool SharedWire::leave(WireEnd* end) {
  end->end();
  ++ended_;
  if (--communicators_ != 0) return false;
  if (std::exchange(places_[0].settled, false)) ++ended_;
  places_[0].end->meetConnected();
  return true;
}

bool SharedWire::sayGoodbye(bool anyway) {
  bool all = true;
  for (const Place& place : places_)
    if (place.end && place.end->hasEnded() && !place.settled) {
      all &= place.end->sayGoodbye(anyway);
      retryLater(place.end.get());
    }
  return all;
}

bool SharedWire::isQuiet() const {
  return std::ranges::all_of(places_,
                             [](const Place& place) { return !place.end || place.end->isQuiet(); });
}

// The memory of the wire's maker stays as long as the wire.
void SharedWire::closeEnded() {
  sayGoodbye(false);
  for (std::uint32_t number = 0; number < places_.size(); ++number) {
    Place& place = places_[number];
    if (!place.end || place.settled || !place.end->hasEnded() || !place.end->isDone()) continue;
    --ended_;
    std::erase(refused_, place.end.get());
    place.settled = true;
    if (number != 0) release(number);
  }
}

}  // namespace weft::wire
