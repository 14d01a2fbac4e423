// SPDX-License-Identifier: Apache-2.0
// Mode msg: header and payload as one message into a receive buffer that the target has posted. It
// copies the payload to where the header says.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "transports/ofi/ofi_wire.h"

namespace weft::ofi {

ssize_t OfiWire::postMsg(const Rail& rail, const PeerRail& way, const WireWrite& write,
                         Slot* slot) const {
  slot->header = {way.secret,   rank_,           static_cast<std::uint32_t>(write.bytes),
                  write.target, write.immediate, static_cast<std::uint32_t>(write.region)};
  auto* const source = const_cast<std::byte*>(write.src);
  const iovec parts[] = {{&slot->header, sizeof(Header)}, {source, write.bytes}};
  void* descriptors[] = {rail.slotDescriptor(), rail.descriptor(write.src, write.bytes)};
  return fi_sendv(rail.endpoint(), parts, descriptors, write.bytes == 0 ? 1 : 2, way.address,
                  &slot->context);
}

void OfiWire::drop(std::uint32_t rail, std::size_t bytes) {
  if (!std::exchange(dropped_, true))
    logWarn("ofi: ", rails_[rail]->device(), ": a message of ", bytes,
            " bytes from somebody who is no rank of this communicator was dropped (told once)");
}

bool OfiWire::received(std::uint32_t rail, Slot* slot, std::size_t bytes, WireEvent* out) {
  Header header;
  const std::span<const std::byte> message(slot->buffer, bytes);
  bool event = false;
  if (!readHeader(message, rails_[rail]->contact().secret, &header) ||
      header.rank >= peers_.size() || peers_[header.rank].rails == 0) {
    drop(rail, bytes);
  } else if (const auto place = placeOf(header, bytes, regions_, layout_);
             place.data() == nullptr) {
    linkDown(header.rank, rail,
             text("ofi: a message of ", bytes, " bytes for offset ", header.target,
                  " is not for memory that it may write here"));
  } else if (peers_[header.rank].fate.ok()) {
    std::ranges::copy(message.subspan(sizeof(header)), place.begin());
    event = completed(rail, header.rank, header.immediate, out);
  }
  rails_[rail]->post(slot);
  return event;
}

}  // namespace weft::ofi
