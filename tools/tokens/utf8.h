// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft::tokens {

// Where the first byte is that is not part of a character in UTF-8; npos if there is none.
size_t firstNotUtf8(std::string_view text);

// Normalization form C (Unicode's annex 15) of a text in UTF-8.
std::string composed(std::string_view text);

}  // namespace weft::tokens
