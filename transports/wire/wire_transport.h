// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "transports/wire/shared_wire.h"
#include "transports/wire/wire_end.h"

namespace weft::wire {

// A Transport over any Wire, for ranks that share no memory; the peers' control pages are mirrors.
// Its branches share the wire.
class WireTransport final : public Transport {
 public:
  struct Parts : WireEnd::Parts {
    std::unique_ptr<Wire> wire;
  };
  explicit WireTransport(Parts parts);
  // One more on that wire.
  WireTransport(std::shared_ptr<SharedWire> shared, std::shared_ptr<WireEnd> end);
  // Says good-bye. The last on a wire waits a moment for that of the peers: closing a connection in
  // which something is unread may also lose what its peer has not read.
  ~WireTransport() override;

  const char* name() const override { return shared_->wire().name(); }
  Caps caps() const override { return caps_; }
  const WindowLayout& layout() const override { return end_->parts().layout; }
  WindowView own() const override { return end_->own(); }
  std::shared_ptr<std::byte> window() const override { return end_->parts().window; }
  ControlPage* control(std::uint32_t peer) const override;
  bool isMirrored(std::uint32_t peer) const override { return peer != end_->parts().rank; }
  std::string describe(std::uint32_t peer) const override;

  Status branch(const TransportSetup& setup, std::span<const std::uint32_t> members,
                std::unique_ptr<Transport>* out) override;

  void acquireProgress() override { shared_->acquireProgress(&presence_); }
  void releaseProgress() override { shared_->releaseProgress(&presence_); }
  bool handOver() override;
  bool hasNews() const override { return end_->hasNews(); }
  PutResult put(const Put&) override;
  bool tell(std::uint32_t peer, std::uint64_t completed) override;
  int poll(Event* out, int max) override;
  std::size_t outstanding() const override;
  bool isPending(std::uint32_t peer) const override;
  void sever(std::uint32_t peer) override;
  bool isDown(std::uint32_t peer) const override;
  const Status& lastError() const override { return lastError_; }

 private:
  WireTransport(const std::shared_ptr<SharedWire>& shared, WireEnd::Parts first);
  template <class Done>
  void progressUntil(Deadline deadline, const Done& done);

  const std::shared_ptr<SharedWire> shared_;
  const std::shared_ptr<WireEnd> end_;
  const Caps caps_;
  SharedWire::Presence presence_;
  Status lastError_;
};

using WireMaker = std::function<Status(const WireSetup&, std::unique_ptr<Wire>*)>;

// Joins the ranks that setup.peers names, or all others if it is empty. Every rank of the
// communicator takes part.
Status makeWireTransport(const TransportSetup& setup, const WireMaker& maker,
                         std::unique_ptr<Transport>* out);

}  // namespace weft::wire
