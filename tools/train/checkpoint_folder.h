// SPDX-License-Identifier: Apache-2.0
// The folder that --save fills and --resume reads, as lib/shard/checkpoint.h lays it out.
#pragma once

#include <filesystem>
#include <string>

namespace weft::train {

bool hasCheckpoint(const std::string& folder);

// A checkpoint of the folder that is not its last one, the newest of them, by its path; empty if there is
// none.
std::string checkpointBeforeLast(const std::string& folder);

// Whether this is one by its name and its files.
bool isCheckpoint(const std::filesystem::path& path);

// Gives a checkpoint, or the last one of a folder, the ending .damaged, by which it counts no more and is kept. Whether
// that was possible.
bool setAside(const std::string& checkpoint);
bool setLastAside(const std::string& folder);

bool isSameFolder(const std::string& a, const std::string& b);

}  // namespace weft::train
