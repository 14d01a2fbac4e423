// SPDX-License-Identifier: Apache-2.0
#include "control/link_family.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "control/control_client.h"

namespace weft::control {
namespace {

constexpr std::uint32_t kNowhere = ~0u;

Members rankByNumber(const Members& numbers) {
  Members ranks(*std::ranges::max_element(numbers) + 1, kNowhere);
  for (std::uint32_t r = 0; r < numbers.size(); ++r) ranks[numbers[r]] = r;
  return ranks;
}

Members leadersAmong(const std::vector<PeerName>& names) {
  std::map<std::string_view, std::uint32_t> first;
  Members leaders;
  for (std::uint32_t r = 0; r < names.size(); ++r)
    leaders.push_back(first.emplace(names[r].host, r).first->second);
  return leaders;
}

}  // namespace

FamilyLink::FamilyLink(std::uint64_t theId, std::shared_ptr<LinkEnd> theEnd,
                       std::shared_ptr<ControlClient> theKeeper, const Members& inFamily,
                       const std::vector<PeerName>& names)
    : id(theId),
      end(std::move(theEnd)),
      keeper(std::move(theKeeper)),
      rankOf(rankByNumber(inFamily)),
      leaders(leadersAmong(names)) {}

std::optional<Members> FamilyLink::placesOf(const Members& inFamily) const {
  Members places;
  std::vector<bool> taken(leaders.size(), false);
  for (const std::uint32_t number : inFamily) {
    if (number >= rankOf.size() || rankOf[number] == kNowhere) return std::nullopt;
    places.push_back(rankOf[number]);
    taken[places.back()] = true;
  }
  const auto hasItsLeader = [&](std::uint32_t place) { return taken[leaders[place]]; };
  if (places[0] != 0 || !std::ranges::all_of(places, hasItsLeader)) return std::nullopt;
  return places;
}

std::uint32_t LinkFamily::next() {
  const std::lock_guard lock(mutex_);
  return ++last_;
}

void LinkFamily::add(const std::shared_ptr<FamilyLink>& link) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(link);
  const auto isIdle = [](const std::shared_ptr<FamilyLink>& kept) { return kept.use_count() == 1; };
  auto idle = std::ranges::count_if(kept_, isIdle);
  std::erase_if(kept_, [&](const auto& kept) {
    return idle > std::ptrdiff_t{kMostIdle} && isIdle(kept) && idle-- > 0;
  });
}

std::vector<std::shared_ptr<FamilyLink>> LinkFamily::links(
    const std::shared_ptr<FamilyLink>& parents) {
  std::vector<std::shared_ptr<FamilyLink>> found;
  if (!parents->end->isGone()) found.push_back(parents);
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [](const auto& link) { return link->end->isGone(); });
  for (auto link = kept_.rbegin(); link != kept_.rend() && found.size() < kMostOffered; ++link)
    if (*link != parents) found.push_back(*link);
  return found;
}

}  // namespace weft::control
