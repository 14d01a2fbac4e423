// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "transports/verbs/connection.h"
#include "transports/verbs/domain.h"
#include "transports/verbs/handshake.h"
#include "transports/verbs/mailbox.h"
#include "transports/wire/wire.h"

namespace weft::verbs {

// The data path over reliable connections, each of which is made when it is first written to. The
// order of one connection is that of RC: what was written before a remote completion is there when
// that is.
class VerbsWire final : public Wire, private Handshakes::Ends {
 public:
  explicit VerbsWire(const WireSetup& setup);
  ~VerbsWire() override;

  // Set-up: the devices, their ports, and all edges of this rank, by peer.
  Domain& add(std::unique_ptr<Domain> domain);
  Mailbox& add(std::unique_ptr<Mailbox> mailbox);
  // `ports`: as many as a rank has at most.
  void setWays(std::vector<Way> ways, std::size_t ports);
  // Pings over each edge, and answers those of others, until every edge has carried both ways, a link
  // is down or the time is up. `wholly`: for all of the time. How many edges are silent (verify.cpp).
  std::uint32_t ping(Deadline deadline, bool wholly);
  // The error of the first that is, or of the first link that is down.
  Status silence(Code code) const;
  // Those with such an edge.
  std::vector<std::uint32_t> silentPeers() const;
  bool isAnyDown() const { return anyDown_; }

  const std::vector<std::unique_ptr<Connection>>& connections() const { return connections_; }

  const char* name() const override { return "verbs"; }
  WireCaps caps() const override {
    return {.maxWrite = maxWrite_, .ordered = true, .manual = !rails_.empty(), .sleeps = true};
  }
  std::uint32_t rails(std::uint32_t peer) const override { return links_[peer].rails; }
  bool isConnected(std::uint32_t peer) const override;
  std::string describe(std::uint32_t peer) const override;
  // area.cpp
  std::size_t contactBytes() const override { return ports_ * sizeof(RemoteRegions); }
  Status openArea(std::uint32_t number, const WireArea& area,
                  std::span<std::byte> contact) override;
  Status joinArea(std::uint32_t number,
                  std::span<const std::span<const std::byte>> contacts) override;
  void closeArea(std::uint32_t number) override {
    if (number < areas_.size()) areas_[number].reset();
  }
  bool sendsFrom(const std::byte* memory, std::size_t bytes, std::uint32_t area) const override;
  WireResult write(const WireWrite& write) override;
  int poll(WireEvent* out, int max) override;
  bool arm(std::vector<pollfd>* descriptors, bool waits) override;
  bool isUnsettled() const override { return handshakes_.isPending(); }
  void sever(std::uint32_t peer) override;
  const Status& lastError() const override { return lastError_; }

 private:
  struct Rail {
    Way way = {};
    Owned<ibv_ah> route = {nullptr, nullptr};  // of datagrams; null until the first
    Connection* connection = nullptr;          // null until it is needed
    Connection* ready = nullptr;               // the same, once it takes writes
    std::vector<WireWrite> kept = {};          // until then
    bool pinged = false;                       // by the peer, and answered
    bool answered = false;                     // by the peer
    bool silent() const { return !pinged || !answered; }
  };
  struct Link {
    std::uint32_t first = 0, rails = 0;  // in rails_
    Status error;                        // why it is down
    bool down() const { return !error.ok(); }
  };

  // A further communicator's memory, here and at its other ranks. Of the first the ways know.
  struct Area {
    WireArea what;
    std::vector<Memory> memory;                      // as domains_
    std::vector<std::vector<RemoteRegions>> theirs;  // by peer of the wire and port there
  };
  const Regions& regionsOf(std::uint32_t area) const {
    return area == 0 ? regions_ : areas_[area]->what.regions;
  }
  bool hasArea(std::uint32_t number) const {
    return number == 0 || (number < areas_.size() && areas_[number]);
  }
  // Where the peer has that region; empty: it has none.
  const RemoteRegion& targetOf(const Way& way, const WireWrite& write) const;
  const Memory& memoryOf(const Domain& domain, std::uint32_t area) const;
  int post(Connection& on, const WireWrite& write) const;

  // What is wrong with it; null: nothing.
  const char* faultOf(const WireWrite& write) const;
  WireResult refuse(Status why);
  // False: the queues hold nothing.
  bool gather();
  void take(const ibv_wc& completion);
  void takeError(const Connection& connection, const ibv_wc& completion);
  void lookAround();
  void flushTails();
  void takeEvents(const Device& device);
  // Also tells whoever polls.
  void linkDown(const Way& on, const std::string& why);
  void cut(const Way& on, std::string what);
  void drain();
  std::span<const Rail> railsTo(std::uint32_t peer) const {
    return std::span(rails_).subspan(links_[peer].first, links_[peer].rails);
  }

  // connecting.cpp
  WireResult keep(Rail& rail, const WireWrite& write);
  // False: there was no mail.
  bool readMail();
  void takeMail(const Mailbox& at, std::span<const std::byte> bytes);
  Rail* railFrom(const Mailbox& at, PortId from);
  // False: not now.
  bool send(std::uint32_t edge, const Word& word);
  Status make(std::uint32_t edge, Endpoint* mine) override;
  Status join(std::uint32_t edge, const Endpoint& theirs) override;
  void say(std::uint32_t edge, const Word& word) override { send(edge, word); }
  void ready(std::uint32_t edge) override;
  void fail(std::uint32_t edge, const std::string& why) override {
    linkDown(rails_[edge].way, why);
  }

  const std::vector<PeerName> names_;
  const std::uint32_t rank_;
  const std::uint32_t remoteCompletions_;
  const Regions regions_;
  std::size_t maxWrite_ = std::size_t{1} << 30;
  std::vector<std::unique_ptr<Domain>> domains_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // gone before the domains
  std::vector<Rail> rails_;                          // by edge; so are these
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Link> links_;                   // by peer
  std::vector<std::unique_ptr<Area>> areas_;  // by number; null: closed, and the first
  std::size_t ports_ = 0;
  Handshakes handshakes_;
  bool anyDown_ = false;
  std::uint32_t silent_ = 0;  // of rails_

  std::vector<WireEvent> ready_;  // from next_ on
  std::size_t next_ = 0;
  bool tails_ = false;  // there may be quiet writes without a completion to come
  std::uint32_t polls_ = 0;
  std::uint32_t idlePolls_ = 0;
  Deadline nextLook_ = Deadline::in(0);
  Status lastError_;
};

}  // namespace weft::verbs
