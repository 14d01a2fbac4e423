// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/area.h"

#include <algorithm>
#include <cstring>

#include "transports/ofi/ofi_wire.h"

namespace weft::ofi {

Area::Area(WireArea area, std::uint32_t ranks, std::uint32_t rails)
    : area_(std::move(area)),
      rails_(rails),
      rankOf_(ranks, kNobody),
      theirs_(area_.peers.size()),
      places_(area_.peers.size() * rails) {
  for (std::uint32_t rank = 0; rank < area_.peers.size(); ++rank) rankOf_[area_.peers[rank]] = rank;
}

void Area::learn(std::uint32_t rank, const AreaContact& contact) {
  theirs_[rank].number = static_cast<std::uint16_t>(contact.number);
  std::ranges::copy(contact.regionBytes, theirs_[rank].regionBytes.begin());
  for (std::uint32_t rail = 0; rail < rails_; ++rail)
    std::ranges::copy(contact.place[rail], places_[rank * rails_ + rail].begin());
}

AreaContact OfiWire::contactOf(std::uint32_t number) const {
  const Area& area = *areas_[number];
  AreaContact contact{.number = number};
  for (std::size_t i = 0; i < kWireRegions; ++i) contact.regionBytes[i] = area.regions()[i].size();
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail)
    for (std::size_t i = 0; i < kWireRegions; ++i)
      contact.place[rail][i] = memoryOf(area, rail).place(i);
  return contact;
}

Status OfiWire::openArea(std::uint32_t number, const WireArea& area, std::span<std::byte> contact) {
  const auto ranks = static_cast<std::uint32_t>(peers_.size());
  auto made = std::make_unique<Area>(area, ranks, static_cast<std::uint32_t>(rails_.size()));
  for (const auto& rail : rails_)
    WEFT_TRY(rail->add(area.regions, mode_ == Mode::Rdma, &made->memory.emplace_back()));
  if (number >= areas_.size()) areas_.resize(number + 1);
  areas_[number] = std::move(made);
  const AreaContact mine = contactOf(number);
  std::memcpy(contact.data(), &mine, sizeof(mine));
  return {};
}

Status OfiWire::joinArea(std::uint32_t number,
                         std::span<const std::span<const std::byte>> contacts) {
  Area& area = *areas_[number];
  for (std::uint32_t rank = 0; rank < area.ranks(); ++rank) {
    AreaContact contact;
    std::memcpy(&contact, contacts[rank].data(), sizeof(contact));
    area.learn(rank, contact);
  }
  return {};
}

void OfiWire::closeArea(std::uint32_t number) {
  if (hasArea(number)) areas_[number].reset();
}

}  // namespace weft::ofi
