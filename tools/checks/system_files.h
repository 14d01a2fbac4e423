// SPDX-License-Identifier: Apache-2.0
// Small readers of /proc and /sys. What is not there reads as nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::checks {

std::string readLine(const std::string& path);  // the first
std::vector<std::string> readLines(const std::string& path);
std::optional<double> readNumber(const std::string& path);     // at the file's start
std::vector<std::string> listFolder(const std::string& path);  // sorted names

// The numbers of "key number" and "key: number" lines.
std::map<std::string, double> readKeys(const std::string& path);
// What follows "key:" in a file such as /proc/self/status, without blanks around it.
std::string readField(const std::string& path, std::string_view key);

// "0-3,8" as numbers; what is malformed ends the list.
std::set<int> parseList(const std::string& list);

// The folders of this process's cgroups that may hold files of `controller`, those of version 2
// and of version 1, from its own group up to the root. `root` stands before /proc and /sys.
std::vector<std::string> cgroupFolders(const std::string& root, std::string_view controller);

}  // namespace weft::checks
