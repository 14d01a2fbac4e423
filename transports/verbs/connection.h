// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/verbs/datagram.h"
#include "transports/verbs/domain.h"
#include "transports/verbs/mailbox.h"
#include "transports/verbs/port.h"
#include "transports/wire/wire.h"

namespace weft::verbs {

using namespace wire;

// What a port tells all others once its mailbox is open. Plain bytes.
struct PortOffer {
  RemoteRegions regions;
  Mailbox::Address mailbox;
};

// An edge as its rank sees it: from a port here to one of a peer.
struct Way {
  std::uint32_t edge = 0;  // which of this rank's
  std::uint32_t peer = 0;
  std::uint32_t farPort = 0;  // of that rank
  bool linkLocal = false;     // by the ports' link-local GIDs
  Mailbox* mailbox = nullptr;
  PortInfo far;
  PortOffer offer;

  const Port& port() const { return mailbox->port(); }
  std::uint32_t mtu() const { return std::min(port().info.mtu, far.mtu); }
  const Gid& gidOf(const PortInfo& port) const { return linkLocal ? port.linkLocal : port.gid; }
  const RemoteRegion& target(WireRegion region) const {
    return offer.regions[static_cast<std::size_t>(region)];
  }
  // "rc0p1:1 -> rc1p0:1, 10.0.0.0 -> 10.0.0.1"
  std::string route() const;
};

// A reliable queue pair between a port here and one of a peer: its data path.
//
// A write with immediate data is signaled; a quiet one only now and then, as a completion answers
// for all writes before it. Receives carry no bytes: one is posted for each remote completion that
// may be on its way, and they are renewed in batches.
class Connection {
 public:
  static constexpr std::uint32_t kDepth = 256;                       // writes on their way
  static constexpr std::uint32_t kReceiveBatch = 16;                 // receives renewed at once
  static constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;  // in wr_id: not a write
  static std::uint32_t completions(std::uint32_t remoteCompletions) {
    return kDepth + remoteCompletions + kReceiveBatch;
  }

  // `index` comes back in the completions' wr_id, see indexOf().
  Connection(const Way& way, std::uint32_t index);

  Status create(std::uint32_t remoteCompletions);
  Endpoint endpoint() const { return {pair_->qp_num, sequence_}; }
  Status connect(const Endpoint& theirs);

  // 0, or the error number of the post; full() must be false. `target`: the region of the peer;
  // `localKey`: of the source.
  int post(const WireWrite& write, const RemoteRegion& target, std::uint32_t localKey);
  // Asks for a completion for the quiet writes that would else get none.
  int flush();
  bool full() const { return posted_ - completed_ == kDepth; }
  bool idle() const { return posted_ == completed_; }
  bool wantsFlush() const { return posted_ != signaled_; }

  static std::uint32_t indexOf(std::uint64_t id) {
    return static_cast<std::uint32_t>(id >> 32) & 0x7fffffffu;
  }
  // The write of that wr_id is complete and so are those before it: calls answer(cookie) for each.
  template <class Answer>
  void complete(std::uint64_t id, Answer answer) {
    const auto last = static_cast<std::uint32_t>(id);
    while (static_cast<std::uint32_t>(completed_) != last) {
      const Posted& one = ring_[completed_++ % kDepth];
      if (one.answer) answer(one.cookie);
    }
  }
  // A remote completion has been polled. 0, or the error number of posting receives.
  int renew();
  std::uint64_t polled() const { return polled_; }

  // Nothing is sent or arrives any more.
  void stop();

  const Way& way() const { return way_; }
  Domain& domain() const { return domain_; }

 private:
  struct Posted {
    std::uint64_t cookie = 0;
    bool answer = false;
  };

  Status createPair(ibv_cq* queue, std::uint32_t remoteCompletions);
  Status initialize();
  Status modify(ibv_qp_attr& attributes, int mask, const char* what);
  int postReceives(std::uint32_t count);
  int postSend(ibv_send_wr& work, bool signal, Posted record);

  const Way& way_;
  Domain& domain_;
  const std::uint32_t index_;
  Owned<ibv_qp> pair_;
  std::uint32_t sequence_ = 0;

  std::uint32_t inlineBytes_ = 0;
  std::uint64_t posted_ = 0, signaled_ = 0, completed_ = 0;
  std::uint64_t polled_ = 0;
  std::uint32_t spent_ = 0;  // receives to renew
  std::vector<Posted> ring_;
  std::vector<ibv_recv_wr> receives_;  // a chain of kReceiveBatch
};

}  // namespace weft::verbs
