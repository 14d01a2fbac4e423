// SPDX-License-Identifier: Apache-2.0
// Mode rdma: remote writes with data. The lower 32 bits are the immediate data, and above it, where
// there are 64, the rank of the sender.
#include "transports/ofi/ofi_wire.h"

namespace weft::ofi {

ssize_t OfiWire::postRdma(const Rail& rail, const PeerRail& way, const WireWrite& write,
                          Slot* slot) const {
  const std::uint64_t sender = narrow_ ? 0 : std::uint64_t{rank_} << 32;
  const std::uint64_t data = sender | write.immediate;
  if (write.bytes == 0)
    return fi_writedata(rail.endpoint(), rail.nowhere().data(), 0, rail.nowhereDescriptor(), data,
                        way.address, way.nowhere.base, way.nowhere.key, &slot->context);
  const Area& area = *areas_[write.area];
  const Place& place = area.placeAt(area.rankOf(write.peer), write.rail, write.region);
  return fi_writedata(rail.endpoint(), write.src, write.bytes, sourceOf(write), data, way.address,
                      place.base + write.target, place.key, &slot->context);
}

bool OfiWire::writtenTo(std::uint32_t rail, std::uint64_t data, fi_addr_t from, WireEvent* out) {
  auto sender = static_cast<std::uint32_t>(data >> 32);
  if (narrow_) {
    const auto known = senders_[rail].find(from);
    if (known == senders_[rail].end()) {
      allDown(rail, "ofi: this provider does not tell who wrote", "WEFT_OFI_MODE=msg");
      return false;
    }
    sender = known->second;
  }
  if (sender >= peers_.size() || peers_[sender].rails == 0) return false;
  return completed(rail, sender, static_cast<std::uint32_t>(data), out);
}

}  // namespace weft::ofi
