// SPDX-License-Identifier: Apache-2.0
// Peers are connected by what is first written to them. A provider that connects refuses until then, so
// it is kept here and offered again, while writes to others go their way.
#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/mark.h"
#include "base/text.h"
#include "transports/ofi/ofi_wire.h"

namespace weft::ofi {

bool OfiWire::isConnected(std::uint32_t peer) const {
  return std::ranges::any_of(peers_[peer].rail, &PeerRail::met);
}

WireResult OfiWire::keep(const WireWrite& write) {
  if (kept_.size() == kept_.capacity()) return WireResult::Again;
  PeerRail& way = peers_[write.peer].rail[write.rail];
  if (way.kept++ == 0) way.keptSince = Deadline::Clock::now();
  kept_.push_back(write);
  return WireResult::Accepted;
}

// A few in turn: each that is not connected costs system calls.
void OfiWire::offerKept() {
  constexpr std::size_t kFew = 8;
  for (std::size_t i = std::min(kFew, kept_.size()); i > 0 && !kept_.empty(); --i) {
    if (nextKept_ >= kept_.size()) nextKept_ = 0;
    const WireWrite write = kept_[nextKept_];
    // Not a good-bye that nobody waits for any more.
    const ssize_t result = hasArea(write.area) ? post(write) : 0;
    if (result == 0)
      forgetKept(nextKept_);
    else if (result != -FI_EAGAIN)
      linkDown(write.peer, write.rail, rails_[write.rail]->failure("posting a write", result));
    else if (WEFT_MARK("ofi: not connected yet"))
      unreached(write);
  }
}

void OfiWire::forgetKept(std::size_t index) {
  const WireWrite& write = kept_[index];
  --peers_[write.peer].rail[write.rail].kept;
  kept_[index] = kept_.back();
  kept_.pop_back();
}

void OfiWire::unreached(const WireWrite& write) {
  ++nextKept_;
  const PeerRail& way = peers_[write.peer].rail[write.rail];
  const auto patience = std::chrono::milliseconds(timeoutMs_);
  if (way.met || Deadline::Clock::now() - way.keptSince < patience) return;
  linkDown(write.peer, write.rail,
           text("ofi: no connection on rail ", write.rail, " within ", timeoutMs_, " ms"),
           "check firewall and routes, or choose another interface with WEFT_NET_DEVICES");
}

}  // namespace weft::ofi
