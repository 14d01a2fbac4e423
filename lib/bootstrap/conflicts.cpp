// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/conflicts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/rank_list.h"
#include "base/text.h"

namespace weft::bootstrap {
namespace {

using Members = std::vector<Member>;

// Ranks by what they say, the smallest group first: it is the likely culprit.
template <class ValueOf>
auto groupBy(const Members& members, ValueOf valueOf) {
  using Value = decltype(valueOf(members[0]));
  std::map<Value, std::vector<int>> groups;
  for (const Member& member : members) groups[valueOf(member)].push_back(member.hello.rank);
  std::vector<std::pair<Value, std::vector<int>>> sorted(groups.begin(), groups.end());
  std::ranges::sort(sorted, {}, [](const auto& group) {
    return std::pair(group.second.size(), group.second.front());
  });
  return sorted;
}

Status mismatch(std::string message) { return Status::error(Code::Mismatch, std::move(message)); }

Status findVersionConflict(const Members& members) {
  const auto groups = groupBy(members, [](const Member& member) {
    return std::tuple(member.hello.version, member.hello.wire.min, member.hello.wire.max);
  });
  if (groups.size() < 2) return {};
  const auto libraryOf = [](const auto& group) {
    return text(rankList(group.second), ": libweft ", std::get<0>(group.first));
  };
  const auto protocolsOf = [](const auto& group) {
    const auto& [library, min, max] = group.first;
    return text(min, '-', max);
  };
  return mismatch(text(joined(groups, ", ", libraryOf), ": protocols ",
                       joined(groups, " vs ", protocolsOf),
                       ". fix: load the same libweft on all ranks (LD_LIBRARY_PATH, containers)"));
}

Status findSizeConflict(const Members& members) {
  const auto groups = groupBy(members, [](const Member& member) { return member.hello.size; });
  if (groups.size() < 2) return {};
  std::string said;
  for (const auto& [size, ranks] : groups)
    said += text(said.empty() ? "" : ", ", rankList(ranks), ranks.size() == 1 ? " says " : " say ",
                 said.empty() ? "world size " : "", size);
  return mismatch(text(said, ". fix: start all ranks with one world size (check the launcher)"));
}

// What is wrong with a rank's place; empty: nothing.
std::string misplaced(const Hello& hello) {
  if (hello.size < 1 || hello.size > kMaxRanks)
    return text("{who} says world size ", hello.size, ", which is not from 1 to ", kMaxRanks, ".");
  if (hello.rank >= 0 && hello.rank < hello.size) return {};
  if (hello.rank < 0)  // which {who} does not name
    return text("{who} says that it is rank ", hello.rank, "; ranks are 0 to ", hello.size - 1,
                ".");
  return text("{who} is outside of its world size ", hello.size, ": ranks are 0 to ",
              hello.size - 1, ".");
}

Status findRangeConflict(const Members& members) {
  for (const Member& member : members) {
    const std::string wrong = misplaced(member.hello);
    if (wrong.empty()) continue;
    return Status::error({.code = Code::Mismatch,
                          .who = member.info.who,
                          .what = wrong,
                          .fix = "check the launcher"});
  }
  return {};
}

Status findDuplicate(const Members& members) {
  for (std::size_t i = 1; i < members.size(); ++i) {
    const PeerName& first = members[i - 1].info.who;
    const PeerName& second = members[i].info.who;
    if (first.rank != second.rank) continue;
    return Status::error(
        {.code = Code::Mismatch,
         .who = second,
         .what = text("rank ", first.rank, " joined twice: host ", first.host, " pid ", first.pid,
                      " and host ", second.host, " pid ", second.pid, "."),
         .fix = "give every process its own rank (check the launcher)"});
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
    const auto values = parseConfig(member.info.configText);
    const auto found = values.find(key);
    return found == values.end() ? std::string("(unset)") : found->second;
  });
  if (groups.size() < 2) return {};
  std::ranges::sort(groups, {}, [](const auto& group) { return group.second.front(); });
  return text(key, " differs: ", joined(groups, ", ", [](const auto& group) {
                return text(group.first, " on ", rankRanges(group.second));
              }));
}

Status findConfigConflict(const Members& members) {
  std::set<std::string> keys;
  for (const Member& member : members) {
    if (member.info.configText == members[0].info.configText) continue;
    for (const Member* side : {&members[0], &member})
      for (const auto& [key, value] : parseConfig(side->info.configText)) keys.insert(key);
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
  std::ranges::sort(members, {}, [](const Member& member) {
    return std::tie(member.hello.rank, member.info.who.host, member.info.who.pid);
  });
  WEFT_TRY(findVersionConflict(members));
  WEFT_TRY(findSizeConflict(members));
  WEFT_TRY(findRangeConflict(members));
  WEFT_TRY(findDuplicate(members));
  return findConfigConflict(members);
}

}  // namespace weft::bootstrap
