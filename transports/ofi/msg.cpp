// SPDX-License-Identifier: Apache-2.0
// Mode msg: header and payload as one message into a landing that the target has posted. It copies
// the payload to where the header says.
#include <cstring>

#include "base/text.h"
#include "transports/ofi/ofi_wire.h"

namespace weft::ofi {
namespace {

constexpr std::uint32_t kMagic = 0x77666d31;

}  // namespace

ssize_t OfiWire::postMsg(const Rail& rail, const PeerRail& way, const WireWrite& write,
                         Slot* slot) const {
  slot->header = {kMagic,
                  rank_,
                  write.target,
                  static_cast<std::uint32_t>(write.bytes),
                  write.notice,
                  static_cast<std::uint32_t>(write.region),
                  0};
  auto* const source = const_cast<std::byte*>(write.src);
  const iovec parts[] = {{&slot->header, sizeof(Header)}, {source, write.bytes}};
  void* descriptors[] = {rail.slotDescriptor(), rail.descriptor(write.src, write.bytes)};
  return fi_sendv(rail.endpoint(), parts, descriptors, write.bytes == 0 ? 1 : 2, way.address,
                  &slot->context);
}

bool OfiWire::received(std::uint32_t rail, Slot* slot, std::size_t bytes, WireEvent* out) {
  Header header;
  const std::byte* const payload = slot->landing + sizeof(header);
  if (bytes >= sizeof(header)) std::memcpy(&header, slot->landing, sizeof(header));
  bool event = false;
  if (header.magic == kMagic && header.rank < peers_.size() && peers_[header.rank].reached) {
    const bool known = header.region < windows_.size();
    const std::size_t room = known ? windows_[header.region].size() : 0;
    if (header.bytes != bytes - sizeof(header) || header.bytes > room ||
        header.target > room - header.bytes) {
      linkDown(header.rank, text("ofi: a message of ", bytes, " bytes for offset ", header.target,
                                 " does not fit the memory here"));
    } else if (!peers_[header.rank].down) {
      std::memcpy(windows_[header.region].data() + header.target, payload, header.bytes);
      event = noticed(rail, header.rank, header.notice, out);
    }
  }
  rails_[rail]->post(slot);
  return event;
}

}  // namespace weft::ofi
