// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/conflicts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

using Members = std::vector<Member>;

std::string named(const std::vector<int>& ranks) {
  return text(ranks.size() == 1 ? "rank " : "ranks ", compactList(ranks));
}

// Ranks by what they say, the smallest group first: it is the likely culprit.
template <class Value>
using Groups = std::vector<std::pair<Value, std::vector<int>>>;

template <class ValueOf>
auto groupBy(const Members& members, ValueOf valueOf) {
  std::map<decltype(valueOf(members[0])), std::vector<int>> groups;
  for (const Member& member : members) groups[valueOf(member)].push_back(member.hello.rank);
  Groups<decltype(valueOf(members[0]))> sorted(groups.begin(), groups.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), a.second.front()) <
           std::pair(b.second.size(), b.second.front());
  });
  return sorted;
}

Status mismatch(std::string message) { return Status::error(Code::Mismatch, std::move(message)); }

Status findVersionConflict(const Members& members) {
  struct Version {
    std::string library;
    int min, max;
    auto operator<=>(const Version&) const = default;
  };
  const auto groups = groupBy(members, [](const Member& member) {
    return Version{member.hello.version, member.hello.wire.min, member.hello.wire.max};
  });
  if (groups.size() < 2) return {};
  std::string libraries, protocols;
  for (const auto& [version, ranks] : groups) {
    libraries += text(libraries.empty() ? "" : ", ", named(ranks), ": libweft ", version.library);
    protocols += text(protocols.empty() ? "" : " vs ", version.min, '-', version.max);
  }
  return mismatch(text(libraries, ": protocols ", protocols,
                       ". fix: load the same libweft on all ranks (LD_LIBRARY_PATH, containers)"));
}

Status findSizeConflict(const Members& members) {
  const auto groups = groupBy(members, [](const Member& member) { return member.hello.size; });
  if (groups.size() < 2) return {};
  std::string said;
  for (const auto& [size, ranks] : groups) {
    said += text(said.empty() ? "" : ", ", named(ranks), ranks.size() == 1 ? " says " : " say ",
                 said.empty() ? "world size " : "", size);
  }
  return mismatch(text(said, ". fix: start all ranks with one world size (check the launcher)"));
}

Status findRangeConflict(const Members& members) {
  for (const Member& member : members) {
    if (member.hello.rank >= 0 && member.hello.rank < member.hello.size) continue;
    return mismatch(text(describe(member.card), " is outside of its world size ", member.hello.size,
                         ": ranks are 0 to ", member.hello.size - 1, ". fix: check the launcher"));
  }
  return {};
}

Status findDuplicate(const Members& members) {
  for (std::size_t i = 1; i < members.size(); ++i) {
    const RankCard& first = members[i - 1].card;
    const RankCard& second = members[i].card;
    if (first.rank != second.rank) continue;
    return mismatch(text("rank ", first.rank, " joined twice: host ", first.host, " pid ",
                         first.pid, " and host ", second.host, " pid ", second.pid,
                         ". fix: give every process its own rank (check the launcher)"));
  }
  return {};
}

std::map<std::string, std::string> parseConfig(std::string_view config) {
  std::map<std::string, std::string> values;
  while (!config.empty()) {
    const std::string_view entry = config.substr(0, config.find(';'));
    const std::string_view key = entry.substr(0, entry.find('='));
    if (!key.empty())
      values[std::string(key)] = entry.substr(std::min(entry.size(), key.size() + 1));
    config.remove_prefix(std::min(config.size(), entry.size() + 1));
  }
  return values;
}

// "WEFT_ALGO differs: ring on 0-6, tree on 7", or nothing.
std::string describeKey(const Members& members, const std::string& key) {
  auto groups = groupBy(members, [&](const Member& member) {
    const auto values = parseConfig(member.card.configText);
    const auto found = values.find(key);
    return found == values.end() ? std::string("(unset)") : found->second;
  });
  if (groups.size() < 2) return {};
  std::sort(groups.begin(), groups.end(),
            [](const auto& a, const auto& b) { return a.second.front() < b.second.front(); });
  std::string said;
  for (const auto& [value, ranks] : groups) {
    said += text(said.empty() ? "" : ", ", value, " on ", compactList(ranks));
  }
  return text(key, " differs: ", said);
}

Status findConfigConflict(const Members& members) {
  std::set<std::string> keys;
  for (const Member& member : members) {
    if (member.card.configText == members[0].card.configText) continue;
    for (const Member* side : {&members[0], &member}) {
      for (const auto& [key, value] : parseConfig(side->card.configText)) keys.insert(key);
    }
  }
  std::string said;
  for (const std::string& key : keys) {
    const std::string one = describeKey(members, key);
    if (!one.empty()) said += text(said.empty() ? "" : "; ", one);
  }
  if (said.empty()) return {};
  return mismatch(text(said, ". fix: give all ranks the same settings"));
}

}  // namespace

Status findConflict(std::vector<Member> members) {
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return std::tie(a.hello.rank, a.card.host, a.card.pid) <
           std::tie(b.hello.rank, b.card.host, b.card.pid);
  });
  WEFT_TRY(findVersionConflict(members));
  WEFT_TRY(findSizeConflict(members));
  WEFT_TRY(findRangeConflict(members));
  WEFT_TRY(findDuplicate(members));
  return findConfigConflict(members);
}

std::string compactList(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string list;
  for (std::size_t first = 0, last; first < ranks.size(); first = last + 1) {
    last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] <= ranks[last] + 1) ++last;
    list += text(list.empty() ? "" : ",", ranks[first]);
    if (ranks[last] != ranks[first]) list += text('-', ranks[last]);
  }
  return list;
}

}  // namespace weft
