// SPDX-License-Identifier: Apache-2.0
#include "control/server_groups.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace weft::control {
namespace {

constexpr std::uint32_t kNotThere = ~0u;

Members allOf(std::size_t ranks) {
  Members members(ranks);
  std::iota(members.begin(), members.end(), 0u);
  return members;
}

}  // namespace

ServerGroups::Group::Group(Members theRanks, std::vector<PeerName> names, std::size_t ranksOfLink)
    : members(std::move(theRanks)), rankOf(ranksOfLink, kNotThere), state(std::move(names)) {
  for (std::uint32_t r = 0; r < members.size(); ++r) rankOf[members[r]] = r;
}

std::optional<std::uint32_t> ServerGroups::Group::find(std::optional<std::uint32_t> rank) const {
  return rank && rankOf[*rank] != kNotThere ? std::optional(rankOf[*rank]) : std::nullopt;
}

ServerGroups::ServerGroups(std::vector<PeerName> names, std::shared_ptr<NewGroups> newGroups)
    : names_(std::move(names)), newGroups_(std::move(newGroups)), leaders_(names_.size()) {
  groups_.try_emplace(0, allOf(names_.size()), names_, names_.size());
}

// Calls visit(group, that rank's number in it).
template <class Visit>
void ServerGroups::forEachOf(std::uint32_t rank, const Visit& visit) {
  openNew();
  for (auto& [number, group] : groups_)
    if (const auto r = group.find(rank)) visit(group, *r);
}

void ServerGroups::openNew() {
  if (!newGroups_) return;
  for (const NewGroups::Group& made : newGroups_->take()) open(made);
  for (const std::uint32_t number : newGroups_->takeDropped()) groups_.erase(number);
}

// Its members are here, or have been; each is told what there was to be told once it can hear it.
void ServerGroups::open(const NewGroups::Group& made) {
  std::vector<PeerName> names;
  std::vector<bool> present;
  for (const std::uint32_t rank : made.members) {
    names.push_back(names_[rank]);
    names.back().rank = static_cast<int>(names.size() - 1);
    present.push_back(here(rank));
  }
  Group& group =
      groups_.try_emplace(made.number, made.members, std::move(names), names_.size()).first->second;
  for (std::uint32_t r = 0; r < group.members.size(); ++r) {
    group.state.seat(r, group.find(leaders_[group.members[r]]));
    if (!present[r]) group.state.lose(r, {}, Clock::now());
  }
  while (group.state.take()) continue;
}

void ServerGroups::seat(std::uint32_t rank, Leader leader) {
  leaders_[rank] = leader;
  first().seat(rank, leader);
}

void ServerGroups::orphan(std::uint32_t rank, Clock::time_point now) {
  forEachOf(rank, [&](Group& group, std::uint32_t r) { group.state.orphan(r, now); });
}

void ServerGroups::comeBack(std::uint32_t rank, Leader leader) {
  leaders_[rank] = leader;
  forEachOf(rank,
            [&](Group& group, std::uint32_t r) { group.state.comeBack(r, group.find(leader)); });
}

void ServerGroups::hear(std::uint32_t rank, const net::Message& message, Clock::time_point now) {
  openNew();
  std::uint32_t number = 0;
  net::Message inner{};
  const bool grouped = message.type == net::MessageType::Grouped;
  if (grouped && !decodeGrouped(message.body, &number, &inner)) return;
  if (inner.type == net::MessageType::Bye)
    outgoing_.push_back({rank, message.type,
                         std::make_shared<const net::Bytes>(
                             encodeGrouped(number, net::MessageType::Bye, net::Bytes()))});
  const auto group = groups_.find(number);
  if (group == groups_.end()) return;
  if (const auto r = group->second.find(rank))
    hearOf(group->second, *r, grouped ? inner : message, now);
}

void ServerGroups::hearOf(Group& group, std::uint32_t r, const net::Message& message,
                          Clock::time_point now) {
  using net::MessageType;
  ControlState& state = group.state;
  PageReport page;
  Status cause;
  if (message.type == MessageType::Query && decode(message.body, &page)) {
    state.query(r, page, now);
  } else if (message.type == MessageType::Report && decode(message.body, &page)) {
    state.report(r, page);
  } else if (message.type == MessageType::Failed && bootstrap::decode(message.body, &cause)) {
    state.propose(cause);
  } else if (message.type == MessageType::Gather) {
    state.gather(r, message.body);
  } else if (message.type == MessageType::Info) {
    state.comeBack(r, group.find(leaders_[group.members[r]]));
  } else if (message.type == MessageType::Bye && state.here(r)) {
    state.bye(r, now);
  }
}

void ServerGroups::bye(std::uint32_t rank, Clock::time_point now) {
  forEachOf(rank, [&](Group& group, std::uint32_t r) {
    if (group.state.here(r)) group.state.bye(r, now);
  });
}

void ServerGroups::lose(std::uint32_t rank, const Loss& loss, Clock::time_point now) {
  forEachOf(rank, [&](Group& group, std::uint32_t r) { group.state.lose(r, loss, now); });
}

void ServerGroups::propose(std::uint32_t rank, const Status& cause) {
  forEachOf(rank, [&](Group& group, std::uint32_t) { group.state.propose(cause); });
}

void ServerGroups::tick(Clock::time_point now, const ControlState::Silence& moreSilence) {
  for (auto& [number, group] : groups_) group.state.tick(now, moreSilence);
  forgetLeft();
}

void ServerGroups::beginToLeave(Clock::time_point now) {
  for (auto& [number, group] : groups_) group.state.beginToLeave(now);
}

bool ServerGroups::mayLeave() const {
  return std::ranges::all_of(groups_, [](const auto& g) { return g.second.state.mayLeave(); });
}

void ServerGroups::leave(Clock::time_point now) {
  for (auto& [number, group] : groups_) group.state.leave(now);
}

bool ServerGroups::here(std::uint32_t rank) const {
  return std::ranges::any_of(groups_, [rank](const auto& entry) {
    const auto r = entry.second.find(rank);
    return r && entry.second.state.here(*r);
  });
}

bool ServerGroups::nobodyHere() const {
  return std::ranges::all_of(groups_, [](const auto& g) { return g.second.state.nobodyHere(); });
}

std::optional<ServerGroups::Clock::time_point> ServerGroups::nextTick() const {
  std::optional<Clock::time_point> next;
  for (const auto& [number, group] : groups_)
    if (const auto tick = group.state.nextTick()) next = next ? std::min(*next, *tick) : *tick;
  return next;
}

// A connection says good-bye once, after all else, though each of its communicators does.
std::optional<ServerGroups::Outgoing> ServerGroups::take() {
  for (auto group = groups_.begin(); outgoing_.empty() && group != groups_.end(); ++group)
    collect(group->first, group->second);
  if (outgoing_.empty() && !farewell_.empty()) {
    const std::uint32_t rank = farewell_.extract(farewell_.begin()).value();
    return Outgoing{rank, net::MessageType::Bye, std::make_shared<const net::Bytes>()};
  }
  if (outgoing_.empty()) return std::nullopt;
  Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  return next;
}

void ServerGroups::collect(std::uint32_t number, Group& group) {
  std::shared_ptr<const net::Bytes> plain, wrapped;  // of one body for many ranks
  net::MessageType type{};
  while (auto out = group.state.take()) {
    const std::uint32_t rank = group.members[out->rank];
    if (out->type == net::MessageType::Bye) {
      farewell_.insert(rank);
    } else if (number == 0) {
      outgoing_.push_back({rank, out->type, std::move(out->body)});
    } else {
      if (plain != out->body || type != out->type)
        wrapped = std::make_shared<const net::Bytes>(encodeGrouped(number, out->type, *out->body));
      plain = std::move(out->body), type = out->type;
      outgoing_.push_back({rank, net::MessageType::Grouped, wrapped});
    }
  }
}

// Those but the first that all have left.
void ServerGroups::forgetLeft() {
  for (auto next = std::next(groups_.begin()); next != groups_.end();) {
    const auto group = next++;
    if (!group->second.state.nobodyHere()) continue;
    collect(group->first, group->second);
    groups_.erase(group);
  }
}

}  // namespace weft::control
