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
  const Area& area = *areas_[write.area];
  slot->header = {.secret = way.secret,
                  .rank = rank_,
                  .bytes = static_cast<std::uint32_t>(write.bytes),
                  .target = write.target,
                  .immediate = write.immediate,
                  .region = static_cast<std::uint16_t>(write.region),
                  .area = area.numberAt(area.rankOf(write.peer))};
  auto* const source = const_cast<std::byte*>(write.src);
  const iovec parts[] = {{&slot->header, sizeof(Header)}, {source, write.bytes}};
  void* descriptors[] = {rail.slotDescriptor(), sourceOf(write)};
  return fi_sendv(rail.endpoint(), parts, descriptors, write.bytes == 0 ? 1 : 2, way.address,
                  &slot->context);
}

void OfiWire::drop(std::uint32_t rail, std::size_t bytes) {
  if (!std::exchange(dropped_, true))
    logWarn("ofi: ", rails_[rail]->device(), ": a message of ", bytes,
            " bytes from somebody who is no rank of this communicator was dropped (told once)");
}

// False: it may not. What comes for an area that is closed goes nowhere.
bool OfiWire::place(std::uint32_t rail, const Header& header, std::span<const std::byte> message) {
  if (!hasArea(header.area)) return false;
  const Area& area = *areas_[header.area];
  const std::uint32_t rank = area.rankOf(header.rank);
  const auto place = rank == Area::kNobody
                         ? std::span<std::byte>()
                         : placeOf(header, message.size(), area.regions(), area.layout(), rank);
  if (place.data() == nullptr) {
    linkDown(header.rank, rail,
             text("ofi: a message of ", message.size(), " bytes for offset ", header.target,
                  " is not for memory that it may write here"));
    return false;
  }
  std::ranges::copy(message.subspan(sizeof(header)), place.begin());
  return true;
}

bool OfiWire::received(std::uint32_t rail, Slot* slot, std::size_t bytes, WireEvent* out) {
  Header header;
  const std::span<const std::byte> message(slot->buffer, bytes);
  bool event = false;
  if (!readHeader(message, rails_[rail]->contact().secret, &header) ||
      header.rank >= peers_.size() || peers_[header.rank].rails == 0) {
    drop(rail, bytes);
  } else if (peers_[header.rank].fate.ok() && place(rail, header, message)) {
    event = completed(rail, header.rank, header.immediate, out);
  }
  rails_[rail]->post(slot);
  return event;
}

}  // namespace weft::ofi
