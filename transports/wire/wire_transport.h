// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "transports/mapping.h"
#include "transports/wire/inbox.h"
#include "transports/wire/outbox.h"
#include "transports/wire/progress_thread.h"
#include "transports/wire/wire.h"

namespace weft::wire {

// A Transport over any Wire, for ranks that share no memory; the peers' control pages are mirrors.
class WireTransport final : public Transport {
 public:
  struct Parts {
    std::uint32_t rank = 0;
    WindowLayout layout;
    std::shared_ptr<Mapping> windowMemory;  // null: somebody else's, see `window`
    std::byte* window = nullptr;
    ControlPage* control = nullptr;  // null: where the window begins
    std::shared_ptr<Mapping> bounceMemory;
    std::shared_ptr<Mapping> bookMemory;  // bookBytes() of zeros
    std::vector<bool> peers;              // by rank: the wire leads there
    std::unique_ptr<Wire> wire;
  };
  // The peers' mirrors, then a byte an arrival slot for the inbox. Memory comes with what is heard, but
  // for the first page of a mirror.
  static std::size_t bookBytes(const WindowLayout& layout) {
    return layout.ranks * kMirrorBytes + BounceBuffer::arrivalsOf(layout);
  }
  explicit WireTransport(Parts parts);
  // Says good-bye and waits a moment for that of the peers: closing a connection in which something
  // is unread may also lose what its peer has not read.
  ~WireTransport() override;

  const char* name() const override { return parts_.wire->name(); }
  Caps caps() const override {
    const WireCaps wire = parts_.wire->caps();
    return {.polls = true, .sleeps = wire.sleeps, .maxPut = Outbox::maxPut(wire)};
  }
  const WindowLayout& layout() const override { return parts_.layout; }
  WindowView own() const override { return {parts_.window, parts_.layout, parts_.control}; }
  ControlPage* control(std::uint32_t peer) const override;
  bool isMirrored(std::uint32_t peer) const override { return peer != parts_.rank; }
  std::string describe(std::uint32_t peer) const override { return parts_.wire->describe(peer); }

  void acquireProgress() override {
    if (progressThread_) progressThread_->acquireProgress();
  }
  void releaseProgress() override {
    if (progressThread_ && manual_) progressThread_->releaseProgress();
  }
  bool handOver() override;
  bool hasNews() const override { return news_.load(std::memory_order_relaxed); }
  PutResult put(const Put&) override;
  bool tell(std::uint32_t peer, std::uint64_t completed) override;
  int poll(Event* out, int max) override;
  std::size_t outstanding() const override { return outbox_.outstanding() + answers_.size(); }
  bool isPending(std::uint32_t peer) const override { return outbox_.isPending(peer); }
  void sever(std::uint32_t peer) override;
  bool isDown(std::uint32_t peer) const override { return !down_[peer].ok(); }
  const Status& lastError() const override { return lastError_; }

 private:
  static constexpr std::size_t kMirrorBytes = roundUp(sizeof(ControlPage), kPage);

  ControlPage& mirror(std::uint32_t peer) const {
    return *reinterpret_cast<ControlPage*>(parts_.bookMemory->base() + peer * kMirrorBytes);
  }
  int progress();  // the number of the wire's events
  bool progressForSleeper();
  ProgressThread::Milliseconds arm(std::vector<pollfd>* descriptors, bool waits);
  void take(const WireEvent& event);
  void hear(std::uint32_t peer, ImmediateData immediate);
  template <class Done>
  void pollUntil(Deadline deadline, const Done& done);
  void learn(std::uint32_t peer, std::uint64_t completed);
  void breakLink(std::uint32_t peer, const Status& why);
  PutResult putHere(const Put&);
  std::uint32_t arrivalOf(const Put& put) const {
    return static_cast<std::uint32_t>((put.arrival - parts_.layout.arrivals()) /
                                      sizeof(ArrivalSlot));
  }

  Parts parts_;
  BounceBuffer bounce_;
  Outbox outbox_;
  Inbox inbox_;
  std::vector<Status> down_;    // by rank: why its link is down; OK: it is up
  std::vector<bool> left_;      // by rank: it sends nothing more
  std::vector<Event> answers_;  // not told yet
  Status lastError_;
  std::atomic<bool> news_{false};
  const bool manual_;
  // Of a wire that is manual, between calls, or that sleeps; last, as it uses the others.
  std::unique_ptr<ProgressThread> progressThread_;
};

using WireMaker = std::function<Status(const WireSetup&, std::unique_ptr<Wire>*)>;

// Joins the ranks that setup.peers names, or all others if it is empty. Every rank of the
// communicator takes part. `window`: this rank's, made by another transport; null makes one.
Status makeWireTransport(const TransportSetup& setup, const WireMaker& maker,
                         const WindowView& window, std::unique_ptr<Transport>* out);

}  // namespace weft::wire
