// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft::train {

// Where the first byte is that is not part of a character in UTF-8; npos if there is none.
size_t firstNotUtf8(std::string_view text);

// Throws Failure, with file, line and byte, if a text is not UTF-8. It begins there, at a line from 1 and a byte from 0.
void requireUtf8(std::string_view text, const std::string& file, size_t line = 1, size_t byte = 0);

// Normalization form C (Unicode's annex 15) of a text in UTF-8.
std::string composed(std::string_view text);

}  // namespace weft::train
