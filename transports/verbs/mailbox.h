// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/mapping.h"
#include "transports/verbs/datagram.h"
#include "transports/verbs/domain.h"
#include "transports/verbs/port.h"

namespace weft::verbs {

// An unreliable-datagram queue pair of a port: one for all its peers, where a connection is one for
// each. Over it their ends meet. What is sent may be lost.
class Mailbox {
 public:
  // Whoever knows this may send to it.
  struct Address {
    std::uint32_t number = 0;
    std::uint32_t key = 0;  // the NIC drops what comes with another one (Q_Key)
    std::uint64_t secret = 0;
  };

  // `edges`: how many peers may write at the same time.
  static Status open(Domain& domain, const Port& port, PortId id, std::size_t edges,
                     std::unique_ptr<Mailbox>* out);

  const Port& port() const { return port_; }
  const PortId& id() const { return id_; }
  Domain& domain() const { return domain_; }
  const Address& address() const { return address_; }
  // How datagrams get to that port; null with errno set.
  Owned<ibv_ah> route(const Gid& far, bool linkLocal) const;
  // False: too many are on their way. `edge` comes back if that fails.
  bool send(ibv_ah* route, const Address& to, const Datagram& datagram, std::uint32_t edge);

  // Calls arrived(bytes) for each datagram, which may send, and failed(edge, why). False: nothing.
  template <class Arrived, class Failed>
  bool poll(Arrived arrived, Failed failed);
  // The next completion makes descriptor() readable. What is there already does not.
  bool notify() { return channel_.notify({&queue_, 1}); }
  int descriptor() const { return channel_.descriptor(); }

 private:
  static constexpr std::uint32_t kSends = 64;  // on their way
  static constexpr std::size_t kHeader = 40;   // before each datagram: the GRH
  static constexpr std::size_t kSendBytes = 64, kReceiveBytes = 128;
  static constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;  // in wr_id
  static_assert(sizeof(Datagram) <= kSendBytes && kHeader + sizeof(Datagram) <= kReceiveBytes);

  Mailbox(Domain& domain, const Port& port, PortId id);
  Status allocate();
  Status create();
  Status start();
  bool postReceive(std::uint32_t slot);
  std::byte* receiveAt(std::uint32_t slot) const {
    return memory_->base() + kSends * kSendBytes + slot * kReceiveBytes;
  }
  // The datagram in a receive; empty: none.
  std::span<const std::byte> datagramOf(const ibv_wc& completion) const;

  Domain& domain_;
  const Port port_;
  const PortId id_;
  std::uint32_t receives_ = 0;
  Address address_;
  std::shared_ptr<transport::Mapping> memory_;  // of sends, then of receives
  Owned<ibv_mr> registered_;
  Channel channel_;
  Owned<ibv_cq> queue_;
  Owned<ibv_qp> pair_;
  std::vector<std::uint32_t> free_;                // send slots
  std::array<std::uint32_t, kSends> edgeOf_ = {};  // by send slot
};

template <class Arrived, class Failed>
bool Mailbox::poll(Arrived arrived, Failed failed) {
  ibv_wc completions[16];
  const int count = queue_->context->ops.poll_cq(queue_.get(), 16, completions);
  for (const ibv_wc& one :
       std::span(completions, count > 0 ? static_cast<std::size_t>(count) : 0)) {
    const auto slot = static_cast<std::uint32_t>(one.wr_id);
    if ((one.wr_id & kReceive) == 0) {
      free_.push_back(slot);
      if (one.status != IBV_WC_SUCCESS && one.status != IBV_WC_WR_FLUSH_ERR)
        failed(edgeOf_[slot], domain_.verbs().wc_status_str(one.status));
    } else if (one.status == IBV_WC_SUCCESS) {
      arrived(datagramOf(one));
      postReceive(slot);
    }
  }
  return count > 0;
}

}  // namespace weft::verbs
