// SPDX-License-Identifier: Apache-2.0
// The training text: bytes are the tokens, so any file will do and nothing needs a vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::train {

// Throws Failure unless the path is that of a regular file: each rank reads it from its beginning
// to its end, which others do not have.
void requireFile(const std::string& path);

// The bytes of a file, or of all regular files below a folder, one after the other in the order of
// their paths; symbolic links inside the folder are skipped. Throws Failure if something cannot be
// read, or is not what it must be.
enum class TextIs { kAnyBytes, kUtf8 };
std::vector<uint8_t> readCorpus(const std::string& path, TextIs text = TextIs::kAnyBytes);

}  // namespace weft::train
