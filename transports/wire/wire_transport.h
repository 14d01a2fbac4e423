// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/mapped/handle.h"
#include "transports/wire/caretaker.h"
#include "transports/wire/inbox.h"
#include "transports/wire/outbox.h"
#include "transports/wire/wire.h"

namespace weft {

// A Transport over any Wire: cells and landing arenas of ranks that share no memory.
//
// The peers' control pages are mirrors: the wire brings `completed` (tell()), the rest is for
// whoever else knows (control/).
class WireTransport final : public Transport {
 public:
  struct Parts {
    std::uint32_t rank = 0;
    SegmentLayout layout;
    std::shared_ptr<Mapping> segmentMemory;  // null: somebody else's, see `segment`
    std::byte* segment = nullptr;
    std::unique_ptr<Mapping> mailboxMemory;
    std::vector<std::unique_ptr<ControlPage>>
        mirrors;  // by rank; null where the wire does not lead
    std::unique_ptr<Wire> wire;
  };
  explicit WireTransport(Parts parts);
  // Says good-bye and waits a moment for that of the peers: a connection that is closed while
  // something unread is in it may take along what its peer has not read either.
  ~WireTransport() override;

  const char* name() const override { return parts_.wire->name(); }
  Caps caps() const override {
    return {.polls = true, .maxPut = Outbox::maxPut(parts_.wire->caps())};
  }
  const SegmentLayout& layout() const override { return parts_.layout; }
  SegmentView own() const override { return {parts_.segment, parts_.layout}; }
  SegmentView view(std::uint32_t) const override { return {}; }
  ControlPage* control(std::uint32_t peer) const override;
  bool isMirrored(std::uint32_t peer) const override { return peer != parts_.rank; }
  std::string describe(std::uint32_t peer) const override { return parts_.wire->describe(peer); }
  int deathFd(std::uint32_t) const override { return -1; }
  int statFd(std::uint32_t) const override { return -1; }

  std::uint64_t share(const void*, std::size_t) const override { return 0; }
  std::byte* reach(std::uint32_t, std::uint64_t) const override { return nullptr; }
  bool fetch(std::uint32_t peer, std::uint64_t, void*, std::size_t) override;
  bool deposit(std::uint32_t peer, std::uint64_t, const void*, std::size_t) override;

  void attend() override {
    if (caretaker_) caretaker_->attend();
  }
  void leave() override {
    if (caretaker_) caretaker_->leave();
  }
  PutResult put(const Put&) override;
  bool tell(std::uint32_t peer, std::uint64_t completed) override;
  int poll(Event* out, int max) override;
  std::size_t outstanding() const override { return outbox_.outstanding() + answers_.size(); }
  void wake(std::uint32_t) override {}
  void sever(std::uint32_t peer) override;
  bool isDown(std::uint32_t peer) const override { return !down_[peer].empty(); }
  const std::string& lastError() const override { return lastError_; }

 private:
  int progress();  // the number of the wire's events
  void take(const WireEvent& event);
  void hear(std::uint32_t peer, Notice notice);
  void sayBye();
  bool allLeft() const;
  void learn(std::uint32_t peer, std::uint64_t completed);
  void breakLink(std::uint32_t peer, std::string why);
  PutResult putHere(const Put&);
  std::uint32_t cellOf(const Put& put) const {
    return static_cast<std::uint32_t>((put.cell - parts_.layout.cells()) / sizeof(Cell));
  }

  Parts parts_;
  Mailbox mailbox_;
  Outbox outbox_;
  Inbox inbox_;
  std::vector<std::string> down_;  // by rank: why its link is down; empty: it is up
  std::vector<bool> left_;         // by rank: it sends nothing more
  std::vector<Event> answers_;     // not told yet
  std::string lastError_;
  std::unique_ptr<Caretaker> caretaker_;  // of a wire that is manual; last, as it uses the others
};

using WireMaker = std::function<Status(const WireSetup&, std::unique_ptr<Wire>*)>;

// Of the ranks that setup.peers names (all others, if it is empty). Every rank of the communicator
// takes part. `segment`: this rank's, of setup.layout, from another transport; null makes one.
Status makeWireTransport(const TransportSetup& setup, const WireMaker& maker, std::byte* segment,
                         std::unique_ptr<Transport>* out);

}  // namespace weft
