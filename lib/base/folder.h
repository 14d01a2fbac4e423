// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace weft::inline base {

// The names in a folder, in no order, without . and .. : 0, or the errno of what failed. (C++'s own
// directory_iterator ends the process where it should throw bad_alloc.)
int listFolder(const std::string& path, std::vector<std::string>* names);

// Of a file, such as one of /sys; empty if it cannot be read.
std::string firstLine(const std::string& path);

}  // namespace weft::inline base
