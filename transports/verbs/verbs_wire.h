// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "transports/verbs/connection.h"
#include "transports/verbs/domain.h"
#include "transports/wire/wire.h"

namespace weft::verbs {

// The data path over connections that are up. The order of one connection is that of RC: what was
// written before a remote completion is there when that is.
class VerbsWire final : public Wire {
 public:
  explicit VerbsWire(const WireSetup& setup);
  ~VerbsWire() override;

  // Set-up: a domain, and connections in the order of their indices.
  Domain& add(std::unique_ptr<Domain> domain);
  void add(std::unique_ptr<Connection> connection, std::size_t maxMessage);
  const std::vector<std::unique_ptr<Connection>>& connections() const { return connections_; }
  // Sends one empty write over each connection and waits until one has come over each.
  Status verify(Deadline deadline);

  const char* name() const override { return "verbs"; }
  WireCaps caps() const override {
    return {.maxWrite = maxWrite_, .ordered = true, .manual = false, .sleeps = true};
  }
  std::uint32_t rails(std::uint32_t peer) const override {
    return static_cast<std::uint32_t>(links_[peer].connections.size());
  }
  std::string describe(std::uint32_t peer) const override;
  bool sendsFrom(const std::byte* memory, std::size_t bytes) const override;
  WireResult write(const WireWrite& write) override;
  int poll(WireEvent* out, int max) override;
  bool arm(std::vector<pollfd>* descriptors) override;
  void sever(std::uint32_t peer) override;
  const Status& lastError() const override { return lastError_; }

 private:
  struct Link {
    std::vector<Connection*> connections;  // by rail
    Status error;                          // why it is down
    bool down() const { return !error.ok(); }
  };

  Status verificationOf(const Connection& connection, Code code) const;
  bool isVerified() const;

  // What is wrong with it; null: nothing.
  const char* faultOf(const WireWrite& write) const;
  WireResult fail(Status why);
  // False: the queues hold nothing.
  bool gather();
  void take(const ibv_wc& completion);
  void takeError(const Connection& connection, const ibv_wc& completion);
  void lookAround();
  void flushTails();
  void takeEvents(const Device& device);
  // Also tells whoever polls.
  void linkDown(std::uint32_t peer, const Connection& on, const std::string& why);
  void cut(std::uint32_t peer, const Connection& on, std::string what);
  void drain();

  const std::vector<PeerName> names_;
  const std::uint32_t rank_;
  const Regions regions_;
  std::size_t maxWrite_ = std::size_t{1} << 30;
  std::vector<std::unique_ptr<Domain>> domains_;
  std::vector<std::unique_ptr<Connection>> connections_;  // gone before the domains
  std::vector<Link> links_;                               // by peer

  std::vector<WireEvent> ready_;  // from next_ on
  std::size_t next_ = 0;
  bool tails_ = false;  // there may be quiet writes without a completion to come
  std::uint32_t idlePolls_ = 0;
  Deadline nextLook_ = Deadline::in(0);
  Status lastError_;
};

}  // namespace weft::verbs
