// SPDX-License-Identifier: Apache-2.0
#include "control/survey.h"

#include <algorithm>
#include <set>

namespace weft::control {
namespace {

using Call = PageReport::Call;
using Way = std::vector<Call>;  // the newest first

const Call* on(const Way& way, std::uint64_t seq) {
  if (way.empty() || seq > way.front().seq || way.front().seq - seq >= way.size()) return nullptr;
  return &way[way.front().seq - seq];
}

// The first call, as far as is known, in which two ways differ; 0 if there is none.
std::uint64_t partingOf(const Way& one, const Way& other) {
  std::uint64_t first = 0;
  for (const Call& call : one) {
    const Call* const theirs = on(other, call.seq);
    if (theirs == nullptr) continue;
    if (theirs->fingerprint == call.fingerprint) break;
    first = call.seq;
  }
  return first;
}

Way wayOf(const Survey::State& state, const CallTree& calls) {
  return calls.wayTo(state.callSeq, state.fingerprint);
}

void largestFirst(std::vector<News::Group>* groups) {
  const auto size = [](const News::Group& group) { return group.ranks.size(); };
  const auto largest = std::ranges::max_element(*groups, {}, size);
  if (largest != groups->end()) std::iter_swap(groups->begin(), largest);
}

}  // namespace

void Survey::add(std::uint32_t rank, const PageReport& page) {
  groups_[{page.callSeq, page.fingerprint, page.inCall, page.left}].add(rank);
}

std::vector<std::uint32_t> Survey::whomToAsk(const CallTree& calls, const May& mayAsk) const {
  std::set<std::uint64_t> unknown, all;  // fingerprints
  std::vector<std::uint32_t> ranks;
  for (const auto& [state, members] : groups_) all.insert(state.fingerprint);
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    const auto& [state, members] = *group;
    if (all.size() < 2 || ranks.size() == kMostAsked) break;
    if (state.fingerprint == 0 || calls.find(state.callSeq, state.fingerprint)) continue;
    if (!unknown.insert(state.fingerprint).second) continue;
    if (const auto one = members.findIf(mayAsk)) ranks.push_back(*one);
  }
  return ranks;
}

// Those who agree with the furthest are told no words: the others of these have made that call too.
// Of those who have strayed and of whose calls nothing is known yet, nothing is said.
News Survey::news(const CallTree& calls, bool whole) const {
  News news{.whole = whole, .groups = {}, .silences = {}};
  const Way furthest = groups_.size() > 1 ? wayOf(groups_.rbegin()->first, calls) : Way();
  std::vector<Way> ways;  // the furthest's for those who agree with it
  std::uint64_t parting = 0;
  for (const auto& [state, ranks] : groups_) {
    const Call* const there = on(furthest, state.callSeq);
    const bool agrees = there == nullptr || there->fingerprint == state.fingerprint;
    ways.push_back(agrees ? furthest : wayOf(state, calls));
    const std::uint64_t first = partingOf(ways.back(), furthest);
    if (first != 0) parting = parting == 0 ? first : std::min(parting, first);
    news.groups.push_back({.inCall = state.inCall,
                           .left = state.left,
                           .last = {state.callSeq, state.fingerprint, 0, 0},
                           .described = !agrees && !ways.back().empty(),
                           .parting = {},
                           .ranks = ranks});
    if (news.groups.back().described) news.groups.back().last = ways.back().front();
  }
  for (std::size_t i = 0; i < ways.size() && parting != 0; ++i) {
    const Call* const call = on(ways[i], parting);
    if (call != nullptr && call->seq <= news.groups[i].last.seq) news.groups[i].parting = *call;
  }
  largestFirst(&news.groups);
  return news;
}

}  // namespace weft::control
