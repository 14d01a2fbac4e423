// SPDX-License-Identifier: Apache-2.0
#include "tools/test/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace weft::test {
namespace {

using Json = nlohmann::json;

Json load(const std::string& fileOrText) {
  if (fileOrText.starts_with('[') || fileOrText.starts_with('{')) return Json::parse(fileOrText);
  std::ifstream file(fileOrText);
  if (!file || std::filesystem::is_directory(fileOrText))
    throw std::invalid_argument(fmt::format("cannot read '{}'", fileOrText));
  return Json::parse(file);
}

// The list of lists of ranks that `key` names, without the pair of brackets that nccom-test has
// around it for collectives of several parts.
Groups parseLists(const std::string& fileOrText, const char* key) {
  try {
    Json json = load(fileOrText);
    if (json.is_object()) json = Json(json.at(key));
    if (json.size() == 1 && json[0].is_array() && !json[0].empty() && json[0][0].is_array()) {
      json = Json(json[0]);
    }
    return json.get<Groups>();
  } catch (const Json::exception& error) {
    throw std::invalid_argument(fmt::format(R"('{}' is not {{"{}": [[0, 1], [2, 3]]}}: {})",
                                            fileOrText, key, error.what()));
  }
}

void claim(std::set<int>& taken, int rank, int ranks, const char* what) {
  if (rank < 0 || rank >= ranks) {
    throw std::invalid_argument(fmt::format("there is no rank {} among {}", rank, ranks));
  }
  if (!taken.insert(rank).second)
    throw std::invalid_argument(fmt::format("rank {} {}", rank, what));
}

}  // namespace

Groups parseGroups(const std::string& fileOrText, int ranks) {
  Groups groups = parseLists(fileOrText, "replica_groups");
  std::set<int> taken;
  for (const std::vector<int>& group : groups) {
    if (group.size() != groups.front().size()) {
      throw std::invalid_argument(
          fmt::format("groups of {} and of {} ranks; they must be of one size",
                      groups.front().size(), group.size()));
    }
    for (int rank : group) claim(taken, rank, ranks, "is in two groups");
  }
  if (!taken.contains(0)) throw std::invalid_argument("rank 0 reports, so it must be in a group");
  return groups;
}

Groups spreadGroups(int size, int ranks) {
  if (size < 1 || ranks % size != 0) {
    throw std::invalid_argument(fmt::format("{} ranks are not groups of {}", ranks, size));
  }
  const int count = ranks / size;
  Groups groups(static_cast<std::size_t>(count));
  for (int rank = 0; rank < ranks; ++rank) {
    groups[static_cast<std::size_t>(rank % count)].push_back(rank);
  }
  return groups;
}

std::vector<perf::Pair> parsePairs(const std::string& fileOrText, int ranks) {
  std::vector<perf::Pair> pairs;
  std::set<int> sources, targets;
  for (const std::vector<int>& pair : parseLists(fileOrText, "src_target_pairs")) {
    if (pair.size() != 2) throw std::invalid_argument("a pair is a source and a target: [0, 1]");
    claim(sources, pair[0], ranks, "sends twice");
    claim(targets, pair[1], ranks, "receives twice");
    pairs.push_back({pair[0], pair[1]});
  }
  if (pairs.empty()) throw std::invalid_argument("there is no pair");
  return pairs;
}

Place placeOf(int rank, const Groups& groups) {
  for (std::size_t color = 0; color < groups.size(); ++color) {
    const auto found = std::ranges::find(groups[color], rank);
    if (found == groups[color].end()) continue;
    return {static_cast<int>(color), static_cast<int>(found - groups[color].begin())};
  }
  return {static_cast<int>(groups.size()) + rank, 0};
}

}  // namespace weft::test
