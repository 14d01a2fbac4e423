// SPDX-License-Identifier: Apache-2.0
// Zip archives whose entries are stored as they are, not compressed, as torch.save writes them
// (PKWARE's APPNOTE 6.3.9, with its zip64 fields). An entry is a piece of the mapped file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace weft::train {

using ZipEntries = std::map<std::string, std::span<const uint8_t>>;

// The entries by name; `name` is that of the file, for errors. Throws Failure with the offset of
// what is wrong: a file that is cut off, an entry that is compressed, encrypted or there twice.
ZipEntries zipEntriesOf(std::span<const uint8_t> file, const std::string& name);

}  // namespace weft::train
