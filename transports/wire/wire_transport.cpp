// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/wire_transport.h"

#include <chrono>
#include <thread>
#include <utility>

namespace weft::wire {
namespace {

constexpr int kLastPutsMs = 100;
constexpr int kByeMs = 300;
constexpr int kSoonMs = 2;  // what peers that are there take
constexpr auto kNap = std::chrono::microseconds(200);

// A forked child has no such thread, and closing the wire would reach the parent's connections.
void keepForEver(std::shared_ptr<SharedWire> wire) {
  static auto& wires = *new std::vector<std::shared_ptr<SharedWire>>();
  wires.push_back(std::move(wire));
}

Caps capsOf(const WireCaps& wire) {
  return {.mirrors = true, .polls = true, .sleeps = wire.sleeps, .maxPut = Outbox::maxPut(wire)};
}

std::shared_ptr<WireEnd> firstEnd(WireEnd::Parts parts, SharedWire* shared) {
  const ImmediateValues values = WireEnd::valuesOf(parts.layout);
  return std::make_shared<WireEnd>(std::move(parts), AreaWire(shared->wire(), values));
}

}  // namespace

WireTransport::WireTransport(Parts parts)
    : WireTransport(std::make_shared<SharedWire>(std::move(parts.wire)), std::move(parts)) {}

WireTransport::WireTransport(const std::shared_ptr<SharedWire>& shared, WireEnd::Parts first)
    : WireTransport(shared, firstEnd(std::move(first), shared.get())) {}

WireTransport::WireTransport(std::shared_ptr<SharedWire> shared, std::shared_ptr<WireEnd> end)
    : shared_(std::move(shared)), end_(std::move(end)), caps_(capsOf(end_->wire().caps())) {
  {
    const auto held = shared_->lock();
    shared_->add(end_);
  }
  shared_->arrive();
}

WireTransport::~WireTransport() {
  if (!end_->parts().bounceMemory->present()) {
    keepForEver(shared_);
    return;
  }
  acquireProgress();
  bool last = false;
  {
    const auto held = shared_->lock();
    last = shared_->leave(end_.get());
    shared_->progress(nullptr);
  }
  if (!last) {
    shared_->depart(&presence_);
    return;
  }
  progressUntil(Deadline::in(kLastPutsMs), [&] { return shared_->sayGoodbye(false); });
  progressUntil(Deadline::in(kByeMs), [&] { return shared_->sayGoodbye(true); });
  progressUntil(Deadline::in(kByeMs), [&] { return shared_->isQuiet(); });
}

template <class Done>
void WireTransport::progressUntil(Deadline deadline, const Done& done) {
  const Deadline soon = Deadline::in(kSoonMs);
  while (!deadline.expired()) {
    {
      const auto held = shared_->lock();
      if (done()) return;
      shared_->progress(nullptr);
    }
    if (soon.expired())
      std::this_thread::sleep_for(kNap);  // some peer is away, and others may need this core
    else
      std::this_thread::yield();
  }
}

ControlPage* WireTransport::control(std::uint32_t peer) const {
  const WireEnd::Parts& parts = end_->parts();
  if (peer == parts.rank) return &own().control();
  return parts.peers[peer] ? &end_->mirror(peer) : nullptr;
}

std::string WireTransport::describe(std::uint32_t peer) const {
  const auto held = shared_->lock();
  return shared_->wire().describe(end_->wire().peer(peer));
}

PutResult WireTransport::put(const Put& put) {
  const auto held = shared_->lock();
  const PutResult result = end_->put(put, &lastError_);
  shared_->retryLater(end_.get());
  return result;
}

bool WireTransport::tell(std::uint32_t peer, std::uint64_t completed) {
  const auto held = shared_->lock();
  return end_->tell(peer, completed);
}

// Where another communicator makes progress, this one need not.
int WireTransport::poll(Event* out, int max) {
  const auto held = shared_->tryLock();
  if (!held) return 0;
  shared_->progress(end_.get());
  return end_->poll(out, max, &lastError_);
}

bool WireTransport::handOver() {
  {
    const auto held = shared_->lock();
    end_->expectNews();
  }
  return shared_->handOver(&presence_);
}

std::size_t WireTransport::outstanding() const {
  const auto held = shared_->lock();
  return end_->outstanding();
}

bool WireTransport::isPending(std::uint32_t peer) const {
  const auto held = shared_->lock();
  return end_->isPending(peer);
}

// For all communicators on the wire: else what this one has on its way there would go on.
void WireTransport::sever(std::uint32_t peer) {
  if (peer == end_->parts().rank) return;
  const auto held = shared_->lock();
  shared_->sever(end_->wire().peer(peer), end_.get());
  end_->cut(peer, &lastError_);
}

bool WireTransport::isDown(std::uint32_t peer) const {
  const auto held = shared_->lock();
  return end_->isDown(peer);
}

}  // namespace weft::wire
