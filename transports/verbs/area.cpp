// SPDX-License-Identifier: Apache-2.0
// Further communicators on a wire: memory registered with the same devices. A queue pair writes into
// all of it.
#include <cstring>

#include "transports/verbs/verbs_wire.h"

namespace weft::verbs {

Status VerbsWire::openArea(std::uint32_t number, const WireArea& area,
                           std::span<std::byte> contact) {
  auto made = std::make_unique<Area>();
  made->what = area;
  for (const auto& domain : domains_)
    WEFT_TRY(domain->add(area.regions, &made->memory.emplace_back()));
  if (number >= areas_.size()) areas_.resize(number + 1);
  areas_[number] = std::move(made);
  std::vector<RemoteRegions> mine(ports_);
  for (const auto& mailbox : mailboxes_)
    mine[mailbox->id().port] = memoryOf(mailbox->domain(), number).regions();
  std::memcpy(contact.data(), mine.data(), contact.size());
  return {};
}

Status VerbsWire::joinArea(std::uint32_t number,
                           std::span<const std::span<const std::byte>> contacts) {
  Area& area = *areas_[number];
  area.theirs.resize(links_.size());
  for (std::size_t rank = 0; rank < contacts.size(); ++rank) {
    std::vector<RemoteRegions>& theirs = area.theirs[area.what.peers[rank]];
    theirs.resize(ports_);
    std::memcpy(theirs.data(), contacts[rank].data(), contacts[rank].size());
  }
  return {};
}

const Memory& VerbsWire::memoryOf(const Domain& domain, std::uint32_t area) const {
  std::size_t i = 0;
  while (area != 0 && domains_[i].get() != &domain) ++i;
  return area == 0 ? domain.memory() : areas_[area]->memory[i];
}

const RemoteRegion& VerbsWire::targetOf(const Way& way, const WireWrite& write) const {
  static const RemoteRegion nowhere;
  if (write.area == 0 || write.bytes == 0) return way.target(write.region);
  const std::vector<RemoteRegions>& theirs = areas_[write.area]->theirs[way.peer];
  return theirs.empty() ? nowhere : theirs[way.farPort][static_cast<std::size_t>(write.region)];
}

int VerbsWire::post(Connection& on, const WireWrite& write) const {
  const std::uint32_t key =
      write.bytes == 0 ? 0 : memoryOf(on.domain(), write.area).localKey(write.src);
  return on.post(write, targetOf(on.way(), write), key);
}

}  // namespace weft::verbs
